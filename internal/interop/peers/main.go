// Peers compares mqttload with other MQTT clients and tools: each does the same
// work in a process of its own, and Peers prints the CPU time that it takes.
// scripts/peers installs what is needed and runs it.
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
	flag.IntVar(&r.rounds, "rounds", 5, "measure everything `N` times, in turns")
	flag.BoolVar(&quick, "quick", false, "measure three short rounds")
	flag.DurationVar(&r.span, "span", 500*time.Millisecond, "`LENGTH` of one measurement")
	flag.IntVar(&r.connections, "connections", 2000, "number of connections in the work connect")
	flag.StringVar(&r.only, "only", "", "measure only works whose name contains `TEXT`")
	flag.StringVar(&r.onlyClient, "client", "", "measure only clients whose name contains `TEXT`")
	flag.StringVar(&jsonFile, "json", "", "write all samples to `FILE`")
	flag.StringVar(&r.libmosquitto, "libmosquitto", "", "`PATH` of the driver for libmosquitto")
	flag.StringVar(&r.mqttjs, "mqttjs", "", "`FOLDER` with mqtt.js and its driver")
	flag.StringVar(&r.mqttload, "mqttload", "", "`PATH` of the program mqttload, to compare it with tools")
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

// runAsChild runs this program as one of its own child processes, if args say so.
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
		// The parent process reads it from standard output.
		fmt.Println("error:", err)
	}
	return true, nil
}
