package ps

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/springtide/springtide/lab/train"
)

// retry is the pause before a step that failed is tried again: servers start next to their workers.
const retry = time.Second

// Worker takes steps until it is asked to leave.
type Worker struct {
	// Name distinguishes workers, Servers are the HOST:PORTs in the order of their parts.
	Name    string
	Servers []string
	// Batch is the number of examples in a step, Pause the rest after each.
	Batch int
	Pause time.Duration
	// Notice is where the worker reads that it has to leave, and says that it can.
	Notice train.Notice
	// Out takes the lines.
	Out io.Writer

	step int
}

// Run takes steps until ctx ends. A worker that was noticed rests from the end of its step on: what it has computed is
// with the servers by then, so nothing is left to save.
func (w *Worker) Run(ctx context.Context) error {
	if len(w.Servers) == 0 || w.Batch < 1 {
		return fmt.Errorf("worker %s: want servers and a batch of 1 or more, have %d and %d", w.Name, len(w.Servers), w.Batch)
	}
	for ctx.Err() == nil {
		pause := w.Pause
		rests, err := w.answerNotice()
		if err == nil && !rests {
			err = w.advance(ctx)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(w.Out, "retry:", err)
			pause = retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	line := train.Event(train.Leave, w.step)
	line.Lost = 0
	fmt.Fprintln(w.Out, line)
	return nil
}

// answerNotice answers a notice and reports whether one stands.
func (w *Worker) answerNotice() (rests bool, err error) {
	id, err := w.Notice.Stands(time.Now())
	if id.Epoch == 0 || err != nil {
		return false, err
	}
	fresh, err := w.Notice.Acknowledge(id)
	if fresh {
		line := train.Event(train.Ack, w.step)
		line.Epoch = id.Epoch
		fmt.Fprintln(w.Out, line)
	}
	return true, err
}

// advance takes one step. Once begun it is finished, also when the worker gets a notice meanwhile: servers of which
// only some had the gradient would differ by a step.
func (w *Worker) advance(ctx context.Context) error {
	var parameters []float64
	var sizes []int
	number := 0
	for i, server := range w.Servers {
		a, err := ask[pullAnswer](ctx, server, pullPath, pullRequest{Worker: w.Name})
		if err != nil {
			return err
		}
		if i == 0 {
			number = a.Batch
		}
		parameters, sizes = append(parameters, a.Parameters...), append(sizes, len(a.Parameters))
	}
	if len(parameters) != Features {
		return fmt.Errorf("servers %s hold %d parameters of %d: name all of them", strings.Join(w.Servers, ","), len(parameters), Features)
	}
	gradient, loss := draw(number, w.Batch).gradient(parameters)
	done := context.WithoutCancel(ctx)
	for i, server := range w.Servers {
		a, err := ask[pushAnswer](done, server, pushPath, pushRequest{Worker: w.Name, Gradient: gradient[:sizes[i]], Loss: loss})
		if err != nil {
			return err
		}
		if i == 0 {
			w.step = a.Step
		}
		gradient = gradient[sizes[i]:]
	}
	return nil
}

// client gives up on a server that does not answer.
var client = &http.Client{Timeout: 10 * time.Second}

// ask sends one request to a server.
func ask[A any](ctx context.Context, server, path string, q any) (a A, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server+path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if err != nil {
		return a, fmt.Errorf("read the answer of %s: %w", server, err)
	}
	if response.StatusCode != http.StatusOK {
		return a, fmt.Errorf("%s: %s: %s", server, response.Status, strings.TrimSpace(string(data)))
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("read the answer of %s: %w", server, err)
	}
	return a, nil
}
