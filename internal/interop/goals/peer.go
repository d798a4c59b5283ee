package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/scenarios"
)

// request is a line to the other process, and reply its answer.
type request struct {
	Do   string              `json:"do"` // "usage" or "idle"
	N    int                 `json:"n,omitempty"`
	Ends *ends               `json:"ends,omitempty"` // of a third process
	Over scenarios.Transport `json:"over,omitempty"`
}

type reply struct {
	CPUNS int64  `json:"cpu_ns"`
	Bytes int64  `json:"bytes"`
	Error string `json:"error,omitempty"`
}

// servePeer is the other process: it writes the addresses of its echo and its
// broker, and then answers requests until in ends.
func servePeer(ctx context.Context, in io.Reader, out io.Writer) error {
	s, err := openEnds()
	if err != nil {
		return err
	}
	defer s.close()
	enc := json.NewEncoder(out)
	if err := enc.Encode(s.ends); err != nil {
		return err
	}
	dec := json.NewDecoder(in)
	for {
		var q request
		if err := dec.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := enc.Encode(q.answer(ctx)); err != nil {
			return err
		}
	}
}

func (q *request) answer(ctx context.Context) (a reply) {
	var err error
	switch q.Do {
	case "usage":
		a.CPUNS = int64(cputime.Total())
	case "idle":
		a.Bytes, err = idleBytes(ctx, q.Ends, q.Over, q.N)
	default:
		err = fmt.Errorf("unknown request %q", q.Do)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// peer is the other process, as seen from this one.
type peer struct {
	ends ends
	cmd  *exec.Cmd
	in   io.WriteCloser
	dec  *json.Decoder
}

func startPeer(command func() *exec.Cmd) (*peer, error) {
	p := &peer{cmd: command()}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s for the broker: %w", p.cmd.Path, err)
	}
	p.in, p.dec = in, json.NewDecoder(bufio.NewReader(out))
	if err := p.dec.Decode(&p.ends); err != nil {
		p.close()
		return nil, fmt.Errorf("the process for the broker did not say where it listens: %w", err)
	}
	return p, nil
}

func (p *peer) ask(q request) (a reply, err error) {
	if err = json.NewEncoder(p.in).Encode(q); err == nil {
		err = p.dec.Decode(&a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return a, fmt.Errorf("ask the other process for its %s: %w", q.Do, err)
	}
	return a, nil
}

// close ends the process and waits for it.
func (p *peer) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
