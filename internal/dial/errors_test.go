package dial

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// TestRemedies: what to try is chosen by what went wrong, whatever the words.
func TestRemedies(t *testing.T) {
	refused := func(code packet.ReasonCode, reference string) error {
		return &mqtt.RefusedError{Version: packet.V5, Code: code, ServerReference: reference}
	}
	system := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
	}
	way := []string{"mqtt://a:1883"}
	for name, one := range map[string]struct {
		err   error
		kind  result.ErrorKind
		cause result.ErrorCause
		want  string
	}{
		"nothing listens":           {system(syscall.ECONNREFUSED), "", result.CauseNotListening, "nothing listens there"},
		"no local ports":            {system(syscall.EADDRNOTAVAIL), "", result.CauseNoLocalPort, "--source-ip"},
		"no file descriptors":       {system(syscall.EMFILE), "", result.CauseOpenFiles, "ulimit -n"},
		"no such host":              {&net.DNSError{Name: "a", IsNotFound: true}, "", result.CauseName, "check the name"},
		"not authorized":            {refused(packet.ReasonNotAuthorized, ""), result.ErrorConnack, "", "check --username"},
		"busy":                      {refused(packet.ReasonServerBusy, ""), result.ErrorConnack, result.CauseBusy, "try again later"},
		"unknown method":            {refused(packet.ReasonBadAuthenticationMethod, ""), result.ErrorConnack, result.CauseAuthMethod, "--auth-method"},
		"referred":                  {refused(packet.ReasonServerMoved, "b"), result.ErrorConnack, result.CauseReferred, "--follow-server-reference goes there"},
		"sent away":                 {refused(packet.ReasonUseAnotherServer, ""), result.ErrorConnack, result.CauseSentAway, "does not say where"},
		"a reference to nowhere":    {&referralError{way, errors.New("the Server Reference is empty")}, result.ErrorConnack, result.CauseReference, "configuration"},
		"an unreachable reference":  {&Error{url: "mqtt://b:1", way: way, err: system(syscall.ECONNREFUSED)}, "", result.CauseReference, "configuration"},
		"refused where referred to": {&Error{url: "mqtt://b:1", way: way, err: refused(packet.ReasonNotAuthorized, "")}, result.ErrorConnack, "", "check --username"},
	} {
		err := fmt.Errorf("qos=1: %w", one.err)
		e := result.Error{Kind: KindOf(err), Cause: CauseOf(err)}
		if e.Kind != one.kind || e.Cause != one.cause || !strings.Contains(e.Remedy(), one.want) {
			t.Errorf("%s: kind %q, cause %q, remedy %q", name, e.Kind, e.Cause, e.Remedy())
		}
	}
}
