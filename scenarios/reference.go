package scenarios

import (
	"errors"
	"fmt"
	"strings"
)

// ParseReferences reads a Server Reference: a list, separated by spaces, of
// names or addresses, each with a port or without, an IPv6 address in brackets;
// some brokers write URLs. [MQTT5 4.11] What a reference leaves open is as in
// from, the URL of the broker that gave it: TLS, and the user. The port is not:
// without one it is the default of plain or TLS connections.
//
// No reference takes TLS away, and none brings a user along. Errors repeat
// nothing of the reference, which is the broker's.
func ParseReferences(text string, from URL) ([]URL, error) {
	var list []URL
	for one := range strings.FieldsSeq(text) {
		u, err := parseReference(one, from)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	if list == nil {
		return nil, errors.New("the Server Reference is empty")
	}
	return list, nil
}

func parseReference(text string, from URL) (URL, error) {
	if !strings.Contains(text, "://") {
		text = from.Scheme + "://" + text
	}
	u, err := ParseURL(text)
	switch {
	case err != nil:
		return u, fmt.Errorf("the Server Reference is no host:port: %w", err)
	case u.HasUsername:
		return u, errors.New("the Server Reference holds user information: a broker does not say who its clients are")
	case from.Transport().Secure() && !u.Transport().Secure():
		return u, errors.New("the Server Reference leads away from TLS: connect there without --follow-server-reference if that is meant")
	}
	u.Username, u.HasUsername, u.Password, u.HasPassword = from.Username, from.HasUsername, from.Password, from.HasPassword
	return u, nil
}
