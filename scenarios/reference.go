package scenarios

import (
	"errors"
	"fmt"
	"strings"
)

// ParseReferences reads a Server Reference: a list, separated by spaces, of
// names or addresses, each with a port or without, an IPv6 address in brackets;
// some brokers write URLs. [MQTT5 4.11] Transport and user come from the URL of the
// broker that sent it, from, where a reference leaves them open. The port does not:
// its default is that of the transport.
//
// A reference from TLS to plain TCP, and one with user information, is rejected.
// Errors repeat nothing of the reference, which the broker chose.
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
		return u, fmt.Errorf("the Server Reference is not host:port: %w", err)
	case u.HasUsername:
		return u, errors.New("the Server Reference holds user information, which a broker must not choose")
	case from.Transport().Secure() && !u.Transport().Secure():
		return u, errors.New("the Server Reference leads from TLS to plain TCP: give that server as --url if that is intended")
	}
	u.Username, u.HasUsername, u.Password, u.HasPassword = from.Username, from.HasUsername, from.Password, from.HasPassword
	return u, nil
}
