package result

import (
	"bytes"
	"testing"
)

// TestEarlierReports: a case of a version that did not write kind, QoS and
// persistent sessions gets them from what it did write.
func TestEarlierReports(t *testing.T) {
	for name, one := range map[string]struct {
		clients, params, request string
		kind                     Kind
		qos                      int
		persistent               bool
	}{
		"messages":               {`{"clean_start": true}`, `{"key": "qos", "value": "2"}`, "", KindMessages, 2, false},
		"no scenario":            {`null`, `{"key": "qos", "value": "1"}`, "one message acknowledged", KindMessages, 1, false},
		"cycles":                 {`{}`, `{"key": "protocol", "value": "5"}`, "one client connected, subscribed and disconnected", KindCycles, -1, false},
		"connections":            {`{}`, `{"key": "idle", "value": "5"}`, "one connection made", KindConnections, -1, false},
		"received":               {`{}`, `{"key": "qos", "value": "0"}`, "one message received", KindReceived, 0, false},
		"MQTT 3.1.1, persistent": {`{"clean_start": false}`, `{"key": "protocol", "value": "3.1.1"}`, "", KindMessages, -1, true},
		"MQTT 5, clean start":    {`{"clean_start": false, "session_expiry": "0s"}`, `{"key": "protocol", "value": "5"}`, "", KindMessages, -1, false},
		"MQTT 5, persistent":     {`{"clean_start": true, "session_expiry": "1m30s"}`, `{"key": "protocol", "value": "5"}`, "", KindMessages, -1, true},
		"persistence as an axis": {`{}`, `{"key": "clean_start", "value": "false"}`, "", KindMessages, -1, true},
	} {
		file := `{"schema": "mqttload.report/1", "scenario": {"clients": ` + one.clients + `},
			"cases": [{"id": "a", "params": [` + one.params + `], "request": "` + one.request + `"}]}`
		r, err := decode(bytes.NewReader([]byte(file)), maxFileSize)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c, qos := r.Cases[0], -1
		if c.QoS != nil {
			qos = int(*c.QoS)
		}
		if c.Kind != one.kind || qos != one.qos || c.PersistentSessions != one.persistent {
			t.Errorf("%s: kind %q, QoS %d, persistent sessions %t", name, c.Kind, qos, c.PersistentSessions)
		}
	}
}
