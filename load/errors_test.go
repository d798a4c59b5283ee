package load

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// TestLossRemedy: before MQTT 5 a broker that was sent more than it accepts can
// only close the connection; one of MQTT 5 says why, and needs no guess.
func TestLossRemedy(t *testing.T) {
	gone := fmt.Errorf("read: %w", io.EOF)
	for name, one := range map[string]struct {
		err  error
		v    packet.Version
		want string // "" for no remedy
	}{
		"closed":          {gone, packet.V311, "smaller --inflight, or --protocol 5"},
		"reset":           {syscall.ECONNRESET, packet.V31, "smaller --inflight, or --protocol 5"},
		"closed, MQTT 5":  {gone, packet.V5, "the broker's log says why"},
		"not back":        {&mqtt.GaveUpError{Err: syscall.ECONNREFUSED}, packet.V5, "nothing listens there"},
		"referred":        {&mqtt.DisconnectedError{Code: packet.ReasonUseAnotherServer, ServerReference: "b"}, packet.V5, "with --reconnect and --follow-server-reference"},
		"sent away":       {&mqtt.DisconnectedError{Code: packet.ReasonServerMoved}, packet.V5, "does not say where"},
		"taken over":      {&mqtt.DisconnectedError{Code: packet.ReasonSessionTakenOver}, packet.V5, ""},
		"receive maximum": {&mqtt.ProtocolError{Code: packet.ReasonReceiveMaximumExceeded, Err: errors.New("11 in flight")}, packet.V5, "--receive-maximum"},
	} {
		e := lossOf(one.err, one.v)
		got := e.Remedy()
		if e.Kind != result.ErrorDisconnect || !strings.Contains(got, one.want) || (got == "") != (one.want == "") {
			t.Errorf("%s: kind %q, remedy %q, want %q", name, e.Kind, got, one.want)
		}
		if one.v == packet.V5 && strings.Contains(got, "--protocol 5") {
			t.Errorf("%s: a run of MQTT 5 is told to use MQTT 5: %q", name, got)
		}
	}
}
