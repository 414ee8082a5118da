package readapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/store"
)

// Client asks a controller.
type Client struct {
	// HTTP carries the user's token and trusts the controller's authority.
	HTTP *http.Client
	// Base is the address, as in "https://springtide-api.springtide-system.svc".
	Base string

	learned *Learned
}

func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	at := c.Base + Prefix + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return err
	}
	r, err := c.HTTP.Do(q)
	if err != nil {
		return fmt.Errorf("ask the controller: %w", err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 4096))
		return fmt.Errorf("the controller refuses: %s", strings.TrimSpace(string(text)))
	}
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return fmt.Errorf("read the controller's answer: %w: is this binary of another release?", err)
	}
	return nil
}

// About reads the journal, as [store.Store.About] does.
func (c *Client) About(ctx context.Context, kind, name string, n int) ([]store.Event, error) {
	var out []store.Event
	return out, c.get(ctx, "journal", url.Values{"kind": {kind}, "name": {name}, "limit": {strconv.Itoa(n)}}, &out)
}

// Forecast reads the newest forecast of a service.
func (c *Client) Forecast(ctx context.Context, service fleet.ServiceID) (*Forecast, error) {
	out := &Forecast{}
	return out, c.get(ctx, "forecast", url.Values{"service": {string(service)}}, out)
}

// LastCycle reads when the controller's newest cycle was.
func (c *Client) LastCycle(ctx context.Context) (time.Time, error) {
	var out Status
	err := c.get(ctx, "status", nil, &out)
	return out.LastCycle, err
}

// TidesOf reads the newest forecast of a service; n beyond 1 is not asked for.
func (c *Client) TidesOf(ctx context.Context, service fleet.ServiceID, _ int) ([]forecast.Tide, error) {
	all, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	packed, ok := all.Tides[service]
	if !ok {
		return nil, nil
	}
	t, err := store.UnpackTide(packed)
	return []forecast.Tide{t}, err
}

// LoadPortraits reads what was learned of all services.
func (c *Client) LoadPortraits(ctx context.Context) (map[fleet.ServiceID]portrait.Portrait, error) {
	all, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[fleet.ServiceID]portrait.Portrait, len(all.Portraits))
	for id, packed := range all.Portraits {
		if out[id], err = portrait.Unmarshal(packed); err != nil {
			return nil, fmt.Errorf("portrait of %s: %w: is this binary of another release?", id, err)
		}
	}
	return out, nil
}

func (c *Client) all(ctx context.Context) (*Learned, error) {
	if c.learned != nil {
		return c.learned, nil
	}
	out := &Learned{}
	if err := c.get(ctx, "learned", nil, out); err != nil {
		return nil, err
	}
	c.learned = out
	return out, nil
}
