package scenarios

import (
	"regexp"
	"strings"
	"testing"
)

// TestExpandedNames: what is sound as a pattern may not be once its variables
// have their values.
func TestExpandedNames(t *testing.T) {
	tests := []struct {
		name string
		set  []string
		want string // "" is sound
	}{
		{"client id with a wildcard", []string{"client-id", "a+b%i", "topic", "x/%c"},
			"--topic: topic x/%c becomes x/a+b2 with its client id and user name, and topic must not contain a wildcard, + or # [MQTT-3.3.2-2]"},
		{"the same on one connection", []string{"shape", "loopback", "client-id", "a+b%i", "topic", "x/%c"},
			"--topic: topic x/%c becomes x/a+b1 with its client id and user name, and topic must not contain a wildcard, + or # [MQTT-3.3.2-2]"},
		{"no user", []string{"topic", "%u"},
			`--topic: topic %u becomes "" with its client id and user name, and topic must not be empty [MQTT-4.7.3-1]`},
		{"user with a wildcard", []string{"username", "a#", "topic", "x/%u"},
			"--topic: topic x/%u becomes x/a# with its client id and user name, and topic must not contain a wildcard, + or # [MQTT-3.3.2-2]"},
		{"user like a share", []string{"username", "$share/x", "topic", "%u/y"},
			"--topic: topic %u/y becomes $share/x/y with its client id and user name, and topic must not start with $share/, which marks a shared subscription"},
		{"user with the client id", []string{"client-id", "+%i", "username", "n%c", "topic", "x/%u"},
			"--topic: topic x/%u becomes x/n+2 with its client id and user name, and topic must not contain a wildcard, + or # [MQTT-3.3.2-2]"},
		{"sound by itself", []string{"username", "a#", "client-id", "+%i"}, ""},
		{"sound in the topic", []string{"username", "me", "topic", "%u/%c/%i/%r", "pairs", "3"}, ""},
		{"too long", []string{"username", strings.Repeat("u", 40_000), "topic", "%u/%u"},
			"--topic: topic %u/%u becomes " + strings.Repeat("u", 60) + "... with its client id and user name, and topic is longer than 65535 bytes [MQTT-4.7.3-3]"},
		{"user too long", []string{"client-id", strings.Repeat("c", 40_000) + "%i", "username", "%c%c"}, "--username: username is over MQTT's limit of 65,535 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := set(t, builtin("default"), tt.set...).Cases()
			if tt.want != "" {
				checkErrors(t, err, tt.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLastPair: the longest topic is the last pair's.
func TestLastPair(t *testing.T) {
	pattern := strings.Repeat("x", 65_534) + "%i"
	if _, err := set(t, builtin("quick"), "topic", pattern, "pairs", "9").Cases(); err != nil {
		t.Error(err)
	}
	_, err := set(t, builtin("quick"), "topic", pattern, "pairs", "10").Cases()
	if err == nil || !strings.HasSuffix(err.Error(), "is longer than 65535 bytes [MQTT-4.7.3-3]") {
		t.Errorf("pair 10: %v", err)
	}
}

// A client id of MQTT 3.1 is measured with the user name that it holds.
func TestClientIDWithUser(t *testing.T) {
	_, err := set(t, parse(t, "matrix: {protocol: 3.1}"), "client-id", "%u%i", "username", strings.Repeat("u", 20)).Cases()
	checkErrors(t, err, "--client-id: client_id %u%i may have 29 characters, and MQTT 3.1 allows 1 to 23: shorten it")
}

// TestDefaultClientID: [MQTT-3.1.3-5] every broker takes the identifiers of ten
// million clients that were given none.
func TestDefaultClientID(t *testing.T) {
	id := Expand(newScenario().base.Clients.ClientID, sampleVars(10_000_000))
	if !regexp.MustCompile(`^[0-9a-zA-Z]{1,23}$`).MatchString(id) {
		t.Errorf("client identifier %q", id)
	}
}
