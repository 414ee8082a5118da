package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

// compressFrom is the size from which a body is compressed. A shorter one would not shrink below a database page anyway.
const compressFrom = 1 << 10

// pack compresses a large body. The two forms are distinguished by gzip's magic number, which neither JSON nor a
// portrait begins with.
func pack(b []byte) ([]byte, error) {
	if len(b) < compressFrom {
		return b, nil
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := w.Write(b); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// unpack undoes pack.
func unpack(b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return out, nil
}

func packJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return pack(b)
}

func unpackJSON[T any](b []byte) (x T, err error) {
	if b, err = unpack(b); err != nil {
		return x, err
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return x, fmt.Errorf("decode: %w", err)
	}
	return x, nil
}

func packPortrait(p *portrait.Portrait) ([]byte, error) {
	b, err := portrait.Marshal(*p)
	if err != nil {
		return nil, fmt.Errorf("encode portrait of %s: %w", p.Service, err)
	}
	return pack(b)
}

func unpackPortrait(b []byte) (portrait.Portrait, error) {
	b, err := unpack(b)
	if err != nil {
		return portrait.Portrait{}, err
	}
	p, err := portrait.Unmarshal(b)
	if err == nil && p.Version != portrait.Version {
		err = fmt.Errorf("version %d, this process writes version %d", p.Version, portrait.Version)
	}
	return p, err
}

// gap is a number that JSON can hold: NaN is null. It is kept to five significant digits: no forecast is known better, and a tide of a day
// at five minutes and five quantiles shrinks to a third.
type gap float64

// MarshalJSON implements [json.Marshaler].
func (g gap) MarshalJSON() ([]byte, error) {
	f := float64(g)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, f, 'g', 5, 64), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (g *gap) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*g = gap(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(g))
}

// tideForm is the stored form of a tide.
type tideForm struct {
	Service     fleet.ServiceID `json:"service"`
	Signal      portrait.Signal `json:"signal"`
	Made        time.Time       `json:"made"`
	Start       time.Time       `json:"start"`
	StepSeconds float64         `json:"stepSeconds"`
	Quantiles   []float64       `json:"quantiles"`
	Paths       [][]gap         `json:"paths"`
	Model       string          `json:"model"`
	Trusted     bool            `json:"trusted"`
	SkillLost   bool            `json:"skillLost,omitempty"`
	Note        string          `json:"note,omitempty"`
	Days        []dayForm       `json:"days,omitempty"`
	Ordinary    [][]gap         `json:"ordinary,omitempty"`
}

// dayForm is the stored form of a lifted day.
type dayForm struct {
	Name   string    `json:"name"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Factor gap       `json:"factor"`
	Kin    bool      `json:"kin,omitempty"`
}

func packTide(t *forecast.Tide) ([]byte, error) {
	f := tideForm{Service: t.Service, Signal: t.Signal, Made: t.Made, Start: t.Start, StepSeconds: t.Step.Seconds(), Quantiles: t.Quantiles,
		Model: t.Model, Trusted: t.Trusted, SkillLost: t.SkillLost, Note: t.Note, Paths: formOf(t.Paths), Ordinary: formOf(t.Ordinary)}
	for _, d := range t.Days {
		f.Days = append(f.Days, dayForm{d.Name, d.From, d.To, gap(d.Factor), d.Kin})
	}
	return packJSON(&f)
}

func formOf(paths [][]float64) [][]gap {
	if paths == nil {
		return nil
	}
	out := make([][]gap, len(paths))
	for i, p := range paths {
		out[i] = make([]gap, len(p))
		for j, v := range p {
			out[i][j] = gap(v)
		}
	}
	return out
}

func pathsOf(form [][]gap) [][]float64 {
	out := make([][]float64, len(form))
	for i, p := range form {
		out[i] = make([]float64, len(p))
		for j, v := range p {
			out[i][j] = float64(v)
		}
	}
	return out
}

func unpackTide(b []byte) (forecast.Tide, error) {
	f, err := unpackJSON[tideForm](b)
	if err != nil {
		return forecast.Tide{}, err
	}
	t := forecast.Tide{Service: f.Service, Signal: f.Signal, Made: f.Made, Start: f.Start, Quantiles: f.Quantiles, Model: f.Model,
		Step: time.Duration(math.Round(f.StepSeconds * float64(time.Second))), Trusted: f.Trusted, SkillLost: f.SkillLost, Note: f.Note, Paths: pathsOf(f.Paths)}
	if f.Ordinary != nil {
		t.Ordinary = pathsOf(f.Ordinary)
	}
	for _, d := range f.Days {
		t.Days = append(t.Days, forecast.LiftedDay{Name: d.Name, From: d.From, To: d.To, Factor: float64(d.Factor), Kin: d.Kin})
	}
	return t, nil
}

// micros is the stored form of a time: microseconds since 1970.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// PackTide is a tide as the store keeps it; [UnpackTide] is the way back.
func PackTide(t *forecast.Tide) ([]byte, error) { return packTide(t) }

// UnpackTide reads what [PackTide] made.
func UnpackTide(b []byte) (forecast.Tide, error) { return unpackTide(b) }
