// Goals measures what mqttload itself costs on this machine, each cost beside the
// least that the same work costs without MQTT, and says whether it is within the
// goals that the developers have set. Run it in this module:
//
//	go run ./goals            5 rounds, below two minutes
//	go run ./goals -quick     3 short rounds
//	go run ./goals -full      open loops and many connections as well
//
// `mqttload calibrate` measures what users need, ceilings and known answers; the
// two share the scenario. Everything is measured in interleaved rounds, and what
// is compared is CPU time, not wall time: that survives a busy machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/mqttload/mqttload/internal/calibrate"
)

// peerArgument makes this program the other process.
const peerArgument = "peer"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 2 && os.Args[1] == peerArgument {
		err = servePeer(ctx, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goals:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m := &measurement{options: options{messages: 200_000, connects: 400, idle: 2000, many: 10_000, Options: calibrate.Options{
		RunID: "goals", Time: 100 * time.Millisecond,
		Peer:     func() *exec.Cmd { return exec.Command(self, peerArgument) },
		Progress: func(what string) { fmt.Fprintln(os.Stderr, what) },
	}}}
	fs := flag.NewFlagSet("goals", flag.ExitOnError)
	fs.IntVar(&m.Rounds, "rounds", 5, "measure everything `N` times, in turns")
	quick := fs.Bool("quick", false, "measure three short rounds")
	fs.BoolVar(&m.full, "full", false, "measure open loops and 10,000 connections, too")
	strict := fs.Bool("strict", false, "fail if a goal is missed")
	_ = fs.Parse(args) // it ends the program
	if *quick {
		m.Rounds, m.Time, m.connects, m.idle = 3, 25*time.Millisecond, 100, 500
	}
	if err := m.run(ctx); err != nil {
		return err
	}
	if err := render(os.Stdout, m); err != nil {
		return err
	}
	if n := count(m.table, verdictMisses); *strict && n > 0 {
		return fmt.Errorf("%d goals missed", n)
	}
	return nil
}
