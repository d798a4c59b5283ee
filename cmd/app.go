package cmd

import (
	"context"
	"os"
	"sync"

	"github.com/mqttload/mqttload/internal/bench"
)

// app is one run of the program.
type app struct {
	Process
	*terminal
	quit     chan struct{} // closed to end the program at once
	quitOnce sync.Once
}

func newApp(p Process) *app {
	return &app{Process: p, terminal: &terminal{w: p.Stderr, dumb: p.getenv("TERM") == "dumb"}, quit: make(chan struct{})}
}

// interruptible returns a context that the first signal to stop cancels, with
// bench.ErrInterrupted as its cause, after calling first; the second signal ends
// the program at once.
func (a *app) interruptible(ctx context.Context, first func()) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 2)
	unhook := func() {}
	if a.Signals != nil {
		unhook = a.Signals(ch)
	}
	ended := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-ch:
			}
			if n > 0 {
				a.quitOnce.Do(func() { close(a.quit) })
				return
			}
			first()
			cancel(bench.ErrInterrupted)
		}
	}()
	return ctx, sync.OnceFunc(func() {
		unhook()
		close(ended)
		cancel(context.Canceled)
	})
}
