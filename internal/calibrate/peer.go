package calibrate

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/scenarios"
)

// endpoints are where a broker listens, in this process or another one.
type endpoints map[scenarios.Transport]scenarios.Endpoint

// startBroker starts the embedded broker with a listener for every transport.
func startBroker() (*broker.Broker, endpoints, error) {
	var cases []scenarios.Case
	for _, t := range scenarios.Transports() {
		cases = append(cases, scenarios.Case{Transport: t})
	}
	b, cases, err := bench.StartEmbedded(cases)
	at := endpoints{}
	for _, c := range cases {
		at[c.Transport] = scenarios.Endpoint{URL: c.Target.URLs[0], CAPEM: c.TLS.CAPEM}
	}
	return b, at, err
}

// ServePeer is the other process of a calibration: it writes where its broker
// listens, and serves it until in ends.
func ServePeer(in io.Reader, out io.Writer) error {
	b, at, err := startBroker()
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	if err := json.NewEncoder(out).Encode(at); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// peer is the other process, seen from this one.
type peer struct {
	broker endpoints
	cmd    *exec.Cmd
	in     io.WriteCloser
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
	p.in = in
	if err := json.NewDecoder(out).Decode(&p.broker); err != nil {
		p.close()
		return nil, fmt.Errorf("the process for the broker did not say where it listens: %w", err)
	}
	return p, nil
}

// close ends the process and waits for it.
func (p *peer) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
