package mqtt

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// Bounds of a [Backoff] that does not set its own.
const (
	defaultBackoffMin = 100 * time.Millisecond
	defaultBackoffMax = 10 * time.Second
)

// Backoff is the waits between attempts to connect: exponential with full
// jitter, so that clients that were turned away together do not come back
// together. The zero value waits up to 0.1 s, then up to twice as long each
// time, up to 10 s. It is for one goroutine.
// [Brooker, Exponential Backoff And Jitter, AWS 2015]
type Backoff struct {
	Min, Max time.Duration // of the longest wait; 0 is 0.1 s and 10 s
	// Rand returns numbers in [0, 1); nil is the process's random numbers.
	Rand func() float64

	ceiling time.Duration // of the last wait; 0 before the first
}

// Next returns how long to wait before the next attempt: at random up to a
// ceiling that doubles with every call.
func (b *Backoff) Next() time.Duration {
	low, high, random := b.Min, b.Max, b.Rand
	if low <= 0 {
		low = defaultBackoffMin
	}
	if high <= 0 {
		high = max(low, defaultBackoffMax)
	}
	if random == nil {
		random = rand.Float64
	}
	// Compared before doubling, which could overflow.
	if b.ceiling > high/2 {
		b.ceiling = high
	} else {
		b.ceiling = min(max(2*b.ceiling, low), high)
	}
	return time.Duration(random() * float64(b.ceiling))
}

// Reset makes the next wait the first again, after a connection that held.
func (b *Backoff) Reset() { b.ceiling = 0 }

// MayPass reports whether the broker may accept the same CONNECT a little
// later: it is unavailable, busy, or has a quota or rate that is used up. Every
// other refusal is about what CONNECT says. [MQTT5 3.2.2.2], [MQTT 3.2.2.3]
func (e *RefusedError) MayPass() bool {
	if e.Version != packet.V5 {
		const serverUnavailable = 3 // [MQTT 3.1.1, table 3.1]
		return e.Code == serverUnavailable
	}
	switch e.Code {
	case packet.ReasonServerUnavailable, packet.ReasonServerBusy,
		packet.ReasonQuotaExceeded, packet.ReasonConnectionRateExceeded:
		return true
	}
	return false
}

// MayPass reports whether err, of a connection attempt, is a refusal that may
// pass: see [RefusedError.MayPass].
func MayPass(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.MayPass()
}
