package csvseries

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// The most that is read of a file: a small gzipped file can hold gigabytes, on one line.
const (
	// mostRecord bounds the bytes of a record, mostID those of an id, mostBytes those of a file once it is unzipped.
	mostRecord = 64 << 10
	mostID     = 1 << 10
	mostBytes  = 8 << 30
	// mostIDs bounds the series of a file, mostHeld the rows that are held at once: those of one series, or all where the rows of an id do not stand together.
	// A row that is held costs about 50 bytes.
	mostIDs  = 1 << 20
	mostHeld = 1 << 24
)

// tooMuch is a file beyond a bound.
type tooMuch struct{ problem, fix string }

func (e *tooMuch) Error() string { return e.problem + ": " + e.fix }

// bounded ends a reading beyond the bounds of a record and of a file. A record is what was read since the last begin; the CSV reader reads a few kilobytes ahead.
type bounded struct {
	r             io.Reader
	record, bytes int64
}

func (b *bounded) begin() { b.record = 0 }

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.record > mostRecord:
		return 0, &tooMuch{fmt.Sprintf("a row of more than %d KiB", mostRecord>>10), "end each row with a line break, and close each quote"}
	case b.bytes > mostBytes:
		return 0, &tooMuch{fmt.Sprintf("more than %d GiB of text", int64(mostBytes)>>30), "split the file"}
	}
	n, err := b.r.Read(p)
	b.record += int64(n)
	b.bytes += int64(n)
	return n, err
}

// unzip reads what is gzipped by its first bytes, whatever its name is.
func unzip(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	magic, _ := in.Peek(2) // an error comes again with the first read
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return gzip.NewReader(in)
	}
	return in, nil
}

// badZip reports whether an error says that what is gzipped is broken.
func badZip(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF)
}
