package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// pinning is the program that pins a process to one core, or "" without such a
// program or with one core only: the other end runs on core 0, clients on core 1.
var pinning = func() string {
	path, err := exec.LookPath("taskset")
	if err != nil || runtime.NumCPU() < 2 {
		return ""
	}
	return path
}()

func pinned(ctx context.Context, core int, argv []string) *exec.Cmd {
	if pinning != "" {
		argv = append([]string{pinning, "-c", fmt.Sprint(core)}, argv...)
	}
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// process is a child process that answers each line with a line.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func start(core int, argv ...string) (*process, error) {
	p := &process{cmd: pinned(context.Background(), core, argv)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	return p, p.cmd.Start()
}

// ask sends a command, unless it is empty, and scans the answer, which must start
// with want, into fields. It kills a child that does not answer in time.
func (p *process) ask(command, want string, fields ...any) error {
	late := time.AfterFunc(2*patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if command != "" {
		if _, err := fmt.Fprintln(p.in, command); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	if !p.lines.Scan() {
		return errors.New("the process has ended, or did not answer in time and was killed")
	}
	rest, ok := strings.CutPrefix(p.lines.Text(), want)
	if !ok {
		return errors.New(p.lines.Text())
	}
	if len(fields) == 0 {
		return nil
	}
	_, err := fmt.Sscan(rest, fields...)
	return err
}

func (p *process) usage() (u usage, err error) {
	var cpu int64
	err = p.ask("usage", "usage", &cpu, &u.writes, &u.reads, &u.rss, &u.received)
	u.cpu = time.Duration(cpu)
	return u, err
}

// stop ends the child, and gives it time to disconnect.
func (p *process) stop() {
	_ = p.in.Close()
	late := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait()
}

// server is the other end of a work.
type server struct {
	*process
	addr, ca string
	patience time.Duration // for messages in flight
	want     counts        // the expected counts
}

func startServer(self, kind, dir string) (*server, error) {
	s := &server{patience: patience / 2}
	argv := []string{self, "server=" + kind}
	if dir != "" {
		argv, s.ca = append(argv, "dir="+dir), dir+"/ca.pem"
	}
	var err error
	if s.process, err = start(0, argv...); err != nil {
		return nil, err
	}
	return s, s.ask("", "addr", &s.addr)
}

// counts are the messages and connections that a server has counted.
type counts struct{ in, out, connections int64 }

func (s *server) count() (c counts, err error) {
	if err = s.ask("count", "count", &c.in, &c.out, &c.connections); err != nil {
		err = fmt.Errorf("server: %w", err)
	}
	return c, err
}

// anyNumber stands for any number of connections.
const anyNumber = -1 << 62

func (c *counts) add(b counts) {
	c.in, c.out, c.connections = c.in+b.in, c.out+b.out, max(c.connections+b.connections, anyNumber)
}
