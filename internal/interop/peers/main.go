// Peers puts mqttload beside other MQTT clients and tools: the same work, each
// in a process of its own, and how much CPU time each takes for it.
// scripts/peers sets everything up.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	code := 0
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		code = 1
	}
	os.Exit(code)
}

func run(args []string) error {
	if done, err := runAsChild(args); done {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r := &runner{self: self, out: os.Stdout, log: os.Stderr, least: 2000}
	var jsonFile string
	var quick bool
	flag.IntVar(&r.rounds, "rounds", 5, "how often everything is measured")
	flag.BoolVar(&quick, "quick", false, "3 short rounds")
	flag.DurationVar(&r.span, "span", 500*time.Millisecond, "length of one measurement")
	flag.IntVar(&r.connections, "connections", 2000, "connections of the work connect")
	flag.StringVar(&r.only, "only", "", "only works whose name contains this")
	flag.StringVar(&r.onlyClient, "client", "", "only clients whose name contains this")
	flag.StringVar(&jsonFile, "json", "", "file for all samples")
	flag.StringVar(&r.libmosquitto, "libmosquitto", "", "the driver for libmosquitto")
	flag.StringVar(&r.mqttjs, "mqttjs", "", "the folder in which mqtt.js and its driver are installed")
	flag.StringVar(&r.mqttload, "mqttload", "", "the program mqttload, for the comparison with tools")
	if err := flag.CommandLine.Parse(args); err != nil {
		return err
	}
	if quick {
		r.rounds, r.span, r.connections = 3, 150*time.Millisecond, 300
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := r.run(ctx)
	if err != nil {
		return err
	}
	if err := render(r.out, r, rows); err != nil {
		return err
	}
	if jsonFile == "" {
		return nil
	}
	return writeJSON(jsonFile, r, rows)
}

// runAsChild does what a process is told that this program has started itself.
func runAsChild(args []string) (done bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	if kind, ok := strings.CutPrefix(args[0], "server="); ok {
		dir := ""
		if len(args) > 1 {
			dir = strings.TrimPrefix(args[1], "dir=")
		}
		return true, runServer(kind, dir, os.Stdin, os.Stdout)
	}
	if !strings.HasPrefix(args[0], "client=") {
		return false, nil
	}
	c, err := parseConf(args)
	if err == nil {
		err = runChild(c, os.Stdin, os.Stdout)
	}
	if err != nil {
		// The process that has started this one reads it there.
		fmt.Println("error:", err)
	}
	return true, nil
}
