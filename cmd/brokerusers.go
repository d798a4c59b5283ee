package cmd

import (
	"errors"
	"io"
	"os"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// referenceCodes are the reason codes of a redirect. [MQTT5 4.11]
var referenceCodes = map[string]packet.ReasonCode{
	"": packet.ReasonUseAnotherServer, "use-another": packet.ReasonUseAnotherServer, "moved": packet.ReasonServerMoved,
}

// checkReference refuses a server reference that no client could follow.
func checkReference(s settings, bad *bench.Faults) {
	ref, code := s["server-reference"], s["server-reference-code"]
	if ref.source > 0 {
		if _, err := scenarios.ParseReferences(ref.value(), scenarios.URL{Scheme: "mqtt"}); err != nil {
			bad.Usage("write HOST or HOST:PORT, an IPv6 address in brackets", "%s %s: %v", ref.place, printable(ref.value()), err)
		}
	}
	if _, known := referenceCodes[code.value()]; !known {
		bad.Usage("", "%s %s: must be moved or use-another", code.place, printable(code.value()))
	}
	if code.source > 0 && ref.source == 0 {
		bad.Usage("add --server-reference HOST:PORT", "%s without --server-reference", code.place)
	}
}

// manyUsers is the number of users from which deriving their keys takes so long
// that the user is told.
const manyUsers = 5000

// readUsers reads the users of a CSV file, whose first row names its columns:
// the same format as --credentials of run, so both can use one file.
func (t *terminal) readUsers(path string) (*broker.Users, error) {
	file, err := scenarios.OpenCredentials(path)
	if err != nil {
		return nil, bench.Faultf(bench.Usage, "", "--users: %v", err)
	}
	defer file.Close()
	var list []broker.User
	for {
		row, err := file.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && !(row.HasUser && row.HasPassword) {
			return nil, bench.Faultf(bench.Usage, "", "--users %s: its first row must name the columns user and password", path)
		}
		if err != nil {
			return nil, bench.Faultf(bench.Usage, "", "--users: %v", err)
		}
		list = append(list, broker.User{Name: row.User, Password: row.Password})
	}
	if list == nil {
		return nil, bench.Faultf(bench.Usage, "add a row for each user below user,password", "--users %s: has no users: nobody could connect", path)
	}
	if len(list) >= manyUsers {
		t.warn("deriving the keys of %s: up to a millisecond of CPU time each", text.Count(len(list), "user"))
	}
	users, err := broker.NewUsers(list)
	if err != nil {
		return nil, bench.Faultf(bench.Usage, "", "--users %s: %v", path, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		t.warn("warning: everyone on this machine can read the users file %s", path)
		t.warn("hint: chmod 600 it")
	}
	return users, nil
}
