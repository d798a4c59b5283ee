package mqtt

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// Defaults of [Backoff].Min and Max.
const (
	defaultBackoffMin = 100 * time.Millisecond
	defaultBackoffMax = 10 * time.Second
)

// Backoff computes the waits between connection attempts. They are exponential
// with full jitter, so that clients that lost their connections together do not
// all return at the same moment: Brooker, Exponential Backoff And Jitter, AWS 2015.
// With the zero value the first wait is up to 0.1 s; the limit doubles with every
// attempt, up to 10 s. A Backoff is for one goroutine.
type Backoff struct {
	// Min is the limit of the first wait, Max that of the longest; 0 is 0.1 s and
	// 10 s.
	Min, Max time.Duration
	// Rand returns numbers in [0, 1); nil is math/rand/v2.
	Rand func() float64

	ceiling time.Duration // limit of the last wait; 0 before the first
}

// Next returns how long to wait before the next attempt: a random time up to a
// limit that doubles with every call.
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
	// Compare before doubling, which could overflow.
	if b.ceiling > high/2 {
		b.ceiling = high
	} else {
		b.ceiling = min(max(2*b.ceiling, low), high)
	}
	return time.Duration(random() * float64(b.ceiling))
}

// Reset starts again at Min. Call it after a connection that lasted.
func (b *Backoff) Reset() { b.ceiling = 0 }

// Temporary reports whether the broker may accept the same CONNECT a little later:
// it is unavailable or busy, or a quota or a connection rate is exceeded. Any other
// refusal concerns the CONNECT itself. [MQTT5 3.2.2.2], [MQTT 3.2.2.3]
func (e *RefusedError) Temporary() bool {
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

// IsTemporary reports whether err is a [RefusedError] that is Temporary.
func IsTemporary(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.Temporary()
}
