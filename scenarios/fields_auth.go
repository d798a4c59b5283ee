package scenarios

import (
	"errors"
	"slices"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// SCRAMSHA256 is the only supported method of enhanced authentication. [RFC 7677]
const SCRAMSHA256 = "SCRAM-SHA-256"

func authFields() []field {
	return []field{
		stringField("auth_method", func(text string) error {
			if text != SCRAMSHA256 {
				return errors.New("auth_method must be " + SCRAMSHA256)
			}
			return nil
		}, func(c *Case) *string { return &c.Clients.AuthMethod }),
		omitDefault("0s", timeField("reauth_interval", 0, MaxDuration, func(c *Case) *time.Duration { return &c.Clients.ReauthInterval })),
	}
}

// checkAuth rejects authentication that clients could not begin, and options that
// only MQTT 5 has.
func checkAuth(c *Case, fail failer) {
	if c.Target.FollowServerReference && c.Protocol != packet.V5 {
		fail("follow_server_reference", "follow_server_reference needs protocol 5, and the matrix has %s: earlier versions have no Server Reference", c.Protocol)
	}
	if c.Clients.AuthMethod == "" {
		if c.Clients.ReauthInterval > 0 {
			fail("reauth_interval", "reauth_interval needs auth_method: a connection without one cannot authenticate again")
		}
		return
	}
	switch {
	case c.Protocol != packet.V5:
		fail("auth_method", "auth_method needs protocol 5, and the matrix has %s: earlier versions have no AUTH packet", c.Protocol)
	case len(c.Target.URLs) == 0:
		fail("auth_method", "auth_method needs a target: the embedded broker has no users: start mqttload broker --users FILE and give its URL")
	case !c.identified():
		fail("auth_method", "auth_method %s needs a user name and a password: give username and password, or credentials with both columns", c.Clients.AuthMethod)
	case !c.printable():
		fail("auth_method", "auth_method %s takes user names and passwords of printable ASCII characters only", c.Clients.AuthMethod)
	}
}

// identified reports whether every client has both a user name and a password.
func (c *Case) identified() bool {
	return c.Clients.credentialAuth || !slices.ContainsFunc(c.Target.URLs, func(u URL) bool {
		user, password := c.Clients.HasUsername || u.HasUsername, c.Clients.HasPassword || u.HasPassword
		return !user || !password
	})
}

// printable reports whether user names and passwords, other than those of a
// credentials file, are the same after SASLprep. [RFC 5802 section 5.1]
func (c *Case) printable() bool {
	ok := true
	check := func(has bool, pattern string) {
		ok = ok && (!has || text.IsASCII(Expand(pattern, sampleVars(1))))
	}
	check(c.Clients.HasUsername, c.Clients.Username)
	check(c.Clients.HasPassword, c.Clients.Password)
	for _, u := range c.Target.URLs {
		ok = ok && (!u.HasUsername || text.IsASCII(u.Username))
		check(u.HasPassword, u.Password)
	}
	return ok
}
