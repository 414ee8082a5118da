package promql

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/common/model"
)

// vectorClient decodes the answers to live queries in one pass. The API's own client goes over an answer four times: with a thousand pods that was
// a third of the controller's processor time. It still decodes every answer that is not a plain vector: errors, warnings, escaped labels.
type vectorClient struct{ api.Client }

// vectorKey is the context's key of the *model.Vector that an answer is read into.
type vectorKey struct{}

// noVector is the answer that the API's client gets in place of one that was read.
const noVector = `{"status":"success","data":{"resultType":"vector","result":[]}}`

// Do implements api.Client.
func (c vectorClient) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	resp, body, err := c.Client.Do(ctx, req)
	if into, ok := ctx.Value(vectorKey{}).(*model.Vector); ok && err == nil && resp.StatusCode == http.StatusOK {
		if v, ok := parseVector(body); ok {
			*into = v
			return resp, []byte(noVector), nil
		}
	}
	return resp, body, err
}

// parseVector reads an answer of the plain form; it reports false of any other.
func parseVector(body []byte) (model.Vector, bool) {
	p := vectorParser{rest: bytes.TrimSpace(body)}
	if !p.skip(`{"status":"success","data":{"resultType":"vector","result":[`) {
		return nil, false
	}
	out := model.Vector{}
	for !p.skip(`]}}`) {
		if len(out) > 0 && !p.skip(`,`) {
			return nil, false
		}
		s, ok := p.sample()
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, len(p.rest) == 0
}

// vectorParser goes over an answer once.
type vectorParser struct {
	rest []byte
	// stamp is the text of the last time, and at its value: all samples of an answer have one time.
	stamp []byte
	at    model.Time
}

func (p *vectorParser) sample() (*model.Sample, bool) {
	if !p.skip(`{"metric":{`) {
		return nil, false
	}
	s := &model.Sample{Metric: model.Metric{}}
	for !p.skip(`}`) {
		if len(s.Metric) > 0 && !p.skip(`,`) {
			return nil, false
		}
		name, ok := p.text()
		if !ok || !p.skip(`:`) {
			return nil, false
		}
		value, ok := p.text()
		if !ok {
			return nil, false
		}
		s.Metric[labelName(name)] = model.LabelValue(value)
	}
	if !p.skip(`,"value":[`) {
		return nil, false
	}
	end := bytes.IndexByte(p.rest, ',')
	if end < 0 || !p.time(p.rest[:end]) {
		return nil, false
	}
	p.rest = p.rest[end+1:]
	number, ok := p.text()
	if !ok || !p.skip(`]}`) {
		return nil, false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	s.Timestamp, s.Value = p.at, model.SampleValue(f)
	return s, err == nil
}

// labelName allocates no memory for the names that each sample has.
func labelName(name []byte) model.LabelName {
	switch string(name) {
	case "namespace":
		return "namespace"
	case "pod":
		return "pod"
	}
	return model.LabelName(name)
}

// time parses a time.
func (p *vectorParser) time(text []byte) bool {
	if bytes.Equal(text, p.stamp) {
		return true
	}
	p.stamp = text
	return p.at.UnmarshalJSON(text) == nil
}

// skip goes past what is expected next.
func (p *vectorParser) skip(expected string) bool {
	rest, ok := bytes.CutPrefix(p.rest, []byte(expected))
	p.rest = rest
	return ok
}

// text reads a string without escapes.
func (p *vectorParser) text() ([]byte, bool) {
	if len(p.rest) == 0 || p.rest[0] != '"' {
		return nil, false
	}
	end := bytes.IndexByte(p.rest[1:], '"')
	if end < 0 {
		return nil, false
	}
	out := p.rest[1 : 1+end]
	p.rest = p.rest[end+2:]
	return out, bytes.IndexByte(out, '\\') < 0
}
