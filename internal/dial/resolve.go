package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// name holds the addresses of a host, in the resolver's order of preference.
type name struct {
	host  string
	ready chan struct{} // closed when addrs and err are set
	addrs []netip.Addr
	err   error
	// good is 1 + the index of the address of the last connection that succeeded, or
	// 0: only the first connection tries several addresses.
	good atomic.Int32
}

// resolve returns the addresses of a host and the time that this call spent in the
// resolver. Concurrent calls share one look-up. A failed look-up is not kept, so that
// the next call asks the resolver again.
func (r *Routes) resolve(ctx context.Context, host string) (*name, time.Duration, error) {
	r.mu.Lock()
	n := r.names[host]
	if n != nil {
		r.mu.Unlock()
		select {
		case <-n.ready:
			return n, 0, n.err
		case <-ctx.Done():
			return nil, 0, &resolveError{host, context.Cause(ctx)}
		}
	}
	n = &name{host: host, ready: make(chan struct{})}
	if r.names == nil {
		r.names = make(map[string]*name)
	}
	r.names[host] = n
	r.mu.Unlock()
	took := n.lookUp(ctx)
	if n.err != nil {
		r.mu.Lock()
		delete(r.names, host)
		r.mu.Unlock()
	}
	close(n.ready)
	return n, took, n.err
}

// lookUp asks the resolver, unless the host is an address.
func (n *name) lookUp(ctx context.Context) time.Duration {
	if ip, err := netip.ParseAddr(n.host); err == nil {
		n.addrs = []netip.Addr{ip.Unmap()}
		return 0
	}
	start := time.Now()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", n.host)
	took := max(time.Since(start), 1)
	switch {
	case ctx.Err() != nil:
		n.err = &resolveError{n.host, context.Cause(ctx)}
	case err != nil:
		n.err = err
	}
	for _, a := range addrs {
		n.addrs = append(n.addrs, a.Unmap())
	}
	return took
}

// resolveError is a look-up that was cancelled or took too long.
type resolveError struct {
	host string
	err  error
}

// Error returns host and cause in one line.
func (e *resolveError) Error() string { return fmt.Sprintf("cannot resolve %q: %v", e.host, e.err) }

// Unwrap returns the cause.
func (e *resolveError) Unwrap() error { return e.err }

// fallback is the delay after which a second address is tried while the first
// attempt goes on. [RFC 8305, 5: Connection Attempt Delay]
const fallback = 250 * time.Millisecond

// connect opens a TCP connection to the address that succeeded last, or else to the
// first that answers. With a source address it uses addresses of that family only.
func (n *name) connect(ctx context.Context, port uint16, source string) (net.Conn, error) {
	var from netip.Addr
	if source != "" {
		var err error
		if from, err = netip.ParseAddr(source); err != nil {
			return nil, fmt.Errorf("source address %q is not an IP address", source)
		}
	}
	if i := n.good.Load(); i > 0 && sameFamily(from, n.addrs[i-1]) {
		nc, err := connectTo(ctx, from, n.addrs[i-1], port)
		if err != nil && len(n.addrs) > 1 {
			n.good.CompareAndSwap(i, 0)
		}
		return nc, err
	}
	return n.race(ctx, from, port)
}

func sameFamily(from, to netip.Addr) bool { return !from.IsValid() || from.Is4() == to.Is4() }

// race tries the addresses in turn, each with a head start over the next one, and
// returns the first connection.
func (n *name) race(ctx context.Context, from netip.Addr, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		nc  net.Conn
		err error
		i   int
	}
	ended := make(chan outcome)
	running := 0
	next := func(i int) int {
		for ; i < len(n.addrs); i++ {
			if sameFamily(from, n.addrs[i]) {
				running++
				go func() {
					nc, err := connectTo(ctx, from, n.addrs[i], port)
					ended <- outcome{nc, err, i}
				}()
				return i + 1
			}
		}
		return i
	}
	at := next(0)
	if running == 0 {
		return nil, fmt.Errorf("source address %s cannot reach %s: it has no address of the same family", from, n.host)
	}
	late := time.NewTimer(fallback)
	defer late.Stop()
	var first error
	for running > 0 {
		select {
		case <-late.C:
			at = next(at)
			late.Reset(fallback)
		case o := <-ended:
			running--
			if o.err == nil {
				n.good.Store(int32(o.i) + 1)
				cancel()
				for ; running > 0; running-- {
					if o := <-ended; o.err == nil {
						_ = o.nc.Close()
					}
				}
				return o.nc, nil
			}
			if first == nil || errors.Is(first, context.Canceled) {
				first = o.err
			}
			at = next(at)
		}
	}
	return nil, first
}

// connectTo opens one TCP connection. The kernel's keep-alive is off: its probes are
// traffic that the scenario does not ask for. DialTCP would bind to a port even
// without a source address.
func connectTo(ctx context.Context, from, to netip.Addr, port uint16) (net.Conn, error) {
	d := net.Dialer{KeepAlive: -1}
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		d.Control = shareLocalPorts
	}
	nc, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(to, port).String())
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("connect: %w", context.Cause(ctx))
	}
	return nc, err
}
