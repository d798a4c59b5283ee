package cmd

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/calibrate"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
)

// peerCommand is the hidden command that runs as the other process.
const peerCommand = "calibrate-peer"

var calibrateFlags = []flagGroup{{"Flags", []flagSpec{
	{name: "rounds", tool: true, value: "N", help: "number of rounds; each measures everything once", preset: "5"},
	{name: "quick", kind: toggle, tool: true, help: "three short rounds, under 20 seconds: a first look"},
	{name: "qos", short: "q", kind: list, value: "LIST", help: "QoS levels: 0, 1, 2", preset: "all"},
	{name: "payload", kind: list, value: "LIST", help: "payload sizes in bytes", preset: "10,1KiB,8KiB"},
	{name: "transport", kind: list, value: "LIST", help: "transports: tcp, tls", preset: "both"},
	{name: "tls", kind: toggle, help: "same as --transport tls"},
	{name: "tls-max", value: "VERSION", help: "highest TLS version of the clients"},
	{name: "curves", kind: list, value: "LIST", help: "key exchanges that the clients offer"},
	{name: "no-save", kind: toggle, tool: true, help: "do not save the result, which run uses to show its ceilings"},
	outputFlag("report", reportFormats),
	formatFlag(reportFormats),
	{name: "quiet", kind: toggle, tool: true, help: "print only results and errors"},
}}}

// sizeFlag scales what is measured, for tests of the command.
const sizeFlag = "size"

func (a *app) calibrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "calibrate [flags]", Short: "Measure this tool itself on this machine", Args: noArgs,
		Long: "Calibrate measures how many messages per second this tool can carry on this\n" +
			"machine: its ceiling. It also measures things whose results are known beforehand:\n" +
			"brokers that delay, lose or repeat messages, and statistics of fixed numbers. The\n" +
			"result is saved, and run then shows how close each row comes to the ceiling. The\n" +
			"exit code is 1 if a known result came out wrong.",
		Example: "  mqttload calibrate --output calibration.json",
	}
	define(c, calibrateFlags)
	completeFlags(c)
	c.Flags().Float64(sizeFlag, 1, "")
	_ = c.Flags().MarkHidden(sizeFlag)
	c.RunE = func(c *cobra.Command, args []string) error { return a.calibrate(c, args) }
	return c
}

// calibratePeerCommand is the other process of calibrate.
func (a *app) calibratePeerCommand() *cobra.Command {
	return &cobra.Command{
		Use: peerCommand, Hidden: true, Args: noArgs, Short: "Run the other side of calibrate's measurements",
		RunE: func(*cobra.Command, []string) error {
			bench.RaiseNoFile()
			return calibrate.ServePeer(a.Stdin, a.Stdout)
		},
	}
}

func (a *app) calibrate(c *cobra.Command, args []string) error {
	var bad bench.Faults
	s := flagSettings(c, calibrateFlags)
	s.settle("transport", []string{"tls"}, &bad)
	outs := reportFormats.parse(s, &bad)
	env := bench.Machine()
	o := calibrateOptions(c, s, &bad)
	_, err := o.Scenario()
	bad = append(bad, bench.AsFaults(err, bench.Usage)...)
	o.LoadAverage = bench.LoadAverage()
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return bad.InOrder()
	}
	o.Peer = func() *exec.Cmd { return exec.Command(exe, peerCommand) }
	r := &result.Report{
		Schema: result.Schema, Tool: tool(), Environment: env,
		Run: result.Run{ID: o.RunID, Started: time.Now().UTC(), Status: result.StatusComplete, Command: commandLine(c, args, calibrateFlags)},
	}
	if !s["quiet"].on() {
		a.warn("calibrating: %s of every measurement; leave the machine idle until then", text.Count(o.Rounds, "round"))
		if o.LoadAverage != nil && *o.LoadAverage > float64(env.Cores)/2 {
			a.warn("warning: this machine is busy (load average %.1f on %s): times will be too long and ceilings too low", *o.LoadAverage, text.Count(env.Cores, "core"))
		}
		a.noteReplaced(outs)
		o.Progress = a.calibrateProgress()
	}
	ctx, stop := a.interruptible(c.Context(), func() {})
	defer stop()
	err = calibrate.Run(ctx, o, r)
	if o.Progress != nil && a.isTerminal() {
		a.print(wipe)
	}
	if err != nil {
		return calibrateError(ctx, err)
	}
	now := time.Now().UTC()
	r.Run.Finished = &now
	if !s["no-save"].on() {
		a.saveCalibration(r, len(o.Settings) > 0)
	}
	bad = outs.finish(a.Stdout, func(w io.Writer, format string) error { return report.Write(w, format, r) })
	return append(bad, calibrateVerdict(r.Calibration)...).InOrder().Err()
}

// calibrateError says why there is no result.
func calibrateError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return bench.Faultf(bench.Interrupted, "", "interrupted: a partial calibration is not kept")
	}
	return bench.Faultf(bench.Internal, "", "calibrate: %v", err)
}

// calibrateOptions reads the flags: default sizes, or quick ones.
func calibrateOptions(c *cobra.Command, s settings, bad *bench.Faults) calibrate.Options {
	o := calibrate.Options{RunID: bench.RunID(readSeed(s, bad)), Rounds: 5, Time: 100 * time.Millisecond}
	if s["quick"].on() {
		o.Rounds, o.Time = 3, 25*time.Millisecond
	}
	if one, ok := s["rounds"]; ok {
		n, err := strconv.Atoi(one.value())
		if err != nil || n < 1 || n > 1000 {
			bad.Usage("", "%s %s: rounds are a whole number from 1 to 1000", one.place, one.value())
		}
		o.Rounds = n
	}
	size, _ := c.Flags().GetFloat64(sizeFlag)
	o.Time = max(time.Duration(size*float64(o.Time)), time.Millisecond)
	for _, one := range s.in(calibrateFlags) {
		if !one.tool {
			o.Settings = append(o.Settings, calibrate.Setting{Place: one.place, Key: one.name, Values: one.values})
		}
	}
	return o
}

// progressWidth is the width of the progress line of calibrate.
const progressWidth = 79

// calibrateProgress shows what is measured: in one line of a terminal, or else as
// a line every few seconds.
func (t *terminal) calibrateProgress() func(string) {
	if t.isTerminal() {
		return func(what string) { t.print(wipe + text.Plain(what[:min(len(what), progressWidth)])) }
	}
	var last time.Time
	return func(what string) {
		if time.Since(last) >= logEvery {
			last = time.Now()
			t.warn("%s", what)
		}
	}
}

// calibrateVerdict has one fault for each known answer that came out wrong.
func calibrateVerdict(c *result.Calibration) (bad bench.Faults) {
	for _, w := range c.Wrong() {
		bad.Add(bench.Internal, "try again if the machine was busy; otherwise this is a bug in mqttload: please report it",
			"known answer: %s: expected %s, seen %s", w.Name, w.Expected, w.Seen)
	}
	return bad
}
