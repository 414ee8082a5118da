package prom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

const (
	// scrapeAccept asks for the text format; protobuf would bring native histograms, which the lab has no use for.
	scrapeAccept = "text/plain;version=0.0.4"
	// scrapeLimit bounds a page of metrics, far above any that is not broken.
	scrapeLimit = 64 << 20
)

// target is what is known of a scraped URL.
type target struct {
	extra  labels.Labels
	up     *Series
	series map[string]*Series // by the exposed text of name and labels
}

// Scrape fetches a page of metrics and appends its samples at ts, as Prometheus scrapes: under the target's labels (an
// exposed label of the same name becomes exported_NAME), with a stale marker for each series that the last scrape of this
// URL had and this one has not, and with the series up, which is 1, or 0 when the scrape fails. Timestamps in the page are
// those of the wall clock and are not taken. A URL keeps the labels of its first scrape.
func (p *Prom) Scrape(ctx context.Context, url string, ts time.Time, extra labels.Labels) error {
	return p.ScrapeWith(ctx, http.DefaultClient, url, ts, extra)
}

// ScrapeWith is Scrape by a client of its own, for a target that asks who calls: a kubelet.
func (p *Prom) ScrapeWith(ctx context.Context, client *http.Client, url string, ts time.Time, extra labels.Labels) error {
	p.scrapeMu.Lock()
	defer p.scrapeMu.Unlock()
	t := p.targets[url]
	if t == nil {
		up := labels.NewBuilder(extra).Set(model.MetricNameLabel, "up").Labels()
		t = &target{extra: extra, up: p.Series(up)}
		p.targets[url] = t
	}
	page, contentType, err := fetch(ctx, client, url)
	if err != nil {
		return errors.Join(fmt.Errorf("scrape %s: %w", url, err), p.write(t, ts, nil, nil, 0))
	}
	values, series, err := t.parse(page, contentType)
	if err != nil {
		return errors.Join(fmt.Errorf("scrape %s: %w", url, err), p.write(t, ts, nil, nil, 0))
	}
	return p.write(t, ts, values, series, 1)
}

// fetch reads a page of metrics.
func fetch(ctx context.Context, client *http.Client, url string) (page []byte, contentType string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Accept", scrapeAccept)
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("the target answers %s", resp.Status)
	}
	page, err = io.ReadAll(io.LimitReader(resp.Body, scrapeLimit+1))
	if err == nil && len(page) > scrapeLimit {
		err = fmt.Errorf("the page has more than %d bytes", scrapeLimit)
	}
	return page, resp.Header.Get("Content-Type"), err
}

// parse reads the samples of a page and the series they belong to, by exposed text.
func (t *target) parse(page []byte, contentType string) ([]RefValue, map[string]*Series, error) {
	parser, err := textparse.New(page, contentType, nil, textparse.ParserOptions{FallbackContentType: "text/plain"})
	if parser == nil {
		return nil, nil, fmt.Errorf("no parser for %q: %w", contentType, err)
	}
	var values []RefValue
	series := make(map[string]*Series, len(t.series))
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return values, series, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("parse: %w", err)
		}
		if entry != textparse.EntrySeries {
			continue // help, types, comments
		}
		text, _, v := parser.Series()
		s := t.series[string(text)]
		if s == nil {
			var exposed labels.Labels
			parser.Labels(&exposed)
			s = &Series{labels: t.label(exposed)}
		}
		series[string(text)] = s
		values = append(values, RefValue{Ref: s, Value: v})
	}
}

// label puts the target's labels on an exposed series.
func (t *target) label(exposed labels.Labels) labels.Labels {
	b := labels.NewBuilder(exposed)
	t.extra.Range(func(l labels.Label) {
		if had := exposed.Get(l.Name); had != "" {
			b.Set("exported_"+l.Name, had)
		}
		b.Set(l.Name, l.Value)
	})
	return b.Labels()
}

// write appends a scrape's samples and ends the series that it no longer has.
func (p *Prom) write(t *target, ts time.Time, values []RefValue, series map[string]*Series, up float64) error {
	for text, s := range t.series {
		if series[text] == nil {
			values = append(values, RefValue{Ref: s, Value: staleNaN})
		}
	}
	t.series = series
	return p.AppendBatch(ts, append(values, RefValue{Ref: t.up, Value: up}))
}
