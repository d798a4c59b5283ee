package scenarios

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// URL is the address of a broker.
type URL struct {
	// Scheme is that of its transport, such as "mqtt" or "mqtts", whichever
	// spelling was written.
	Scheme string
	// Host is a DNS name or an IP address without brackets; an IPv6 zone stays.
	Host string
	Port int
	// HasPort says that the port was written and is not the scheme's default.
	HasPort bool
	// Path is "" or begins with "/"; a query is part of it. Only transports with
	// [Transport.HasPath] have one.
	Path string
	// Username and Password are percent-decoded. String never shows them.
	Username    string
	HasUsername bool
	Password    string
	HasPassword bool
}

// Transport returns the transport of the scheme.
func (u URL) Transport() Transport {
	t, _ := ofScheme(u.Scheme)
	return t
}

// Over returns the URL with another transport's scheme, and with its default
// port where no port was written.
func (u URL) Over(t Transport) URL {
	u.Scheme = t.Scheme()
	if !u.HasPort {
		u.Port = t.Port()
	}
	return u
}

// Addr returns host:port for dialling, an IPv6 address in brackets.
func (u URL) Addr() string { return net.JoinHostPort(u.Host, strconv.Itoa(u.Port)) }

// String returns scheme://host:port and the path, never user information.
func (u URL) String() string { return u.Scheme + "://" + u.Addr() + u.Path }

// GoString is [URL.String], so that %#v shows no password either.
func (u URL) GoString() string { return u.String() }

// MarshalText is [URL.String], so that JSON shows no password either.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText is [ParseURL].
func (u *URL) UnmarshalText(b []byte) (err error) {
	*u, err = ParseURL(string(b))
	return err
}

// ParseURL reads the address of a broker: mqtt://, tcp://, mqtts://, ssl://,
// tls:// or tcps:// with optional user information, or a bare host, host:port,
// IPv4 or IPv6 address, which means mqtt. The default
// port is 1883, or 8883 with TLS. Unlike those of net/url, errors do not repeat user
// information.
func ParseURL(s string) (URL, error) {
	u := URL{Scheme: TCP.Scheme()}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return u, errors.New("target holds a space or a control character: percent-encode it")
	}
	rest := s
	if scheme, tail, ok := strings.Cut(s, "://"); ok {
		var err error
		if u.Scheme, err = parseScheme(scheme); err != nil {
			return u, err
		}
		rest = tail
	}
	rest, err := u.cutPath(rest)
	if err != nil {
		return u, err
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := u.setUser(rest[:at]); err != nil {
			return u, err
		}
		rest = rest[at+1:]
	}
	return u, u.setHostPort(rest)
}

func parseScheme(s string) (string, error) {
	lower := strings.ToLower(s)
	t, known := ofScheme(lower)
	switch {
	case known:
		return t.Scheme(), nil
	case slices.Contains(planned, lower):
		return "", fmt.Errorf("scheme %s is not supported yet: %s are", lower, KnownSchemes())
	case s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+-.", r)
	}):
		// It may be a misplaced password.
		return "", fmt.Errorf("target has no scheme before :// : known are %s", KnownSchemes())
	}
	return "", fmt.Errorf("scheme %q is unknown: known are %s", s, KnownSchemes())
}

// cutPath returns the part before the path, and keeps the path where the
// transport has one.
func (u *URL) cutPath(s string) (string, error) {
	i := strings.IndexAny(s, "/?#")
	switch {
	case i < 0:
		return s, nil
	case strings.Contains(s[i:], "@"):
		return "", errors.New("user name or password of the target holds /, ? or #: write %2F, %3F or %23")
	case u.Transport().HasPath():
		return s[:i], u.setPath(s[i:])
	case s[i:] == "/":
		return s[:i], nil
	}
	return "", errors.New("target has a path, query or fragment, which MQTT over TCP does not have: remove it")
}

// setPath takes a path and query as they were written.
func (u *URL) setPath(s string) error {
	if strings.Contains(s, "#") {
		return errors.New("target has a fragment, which is not sent to servers: remove it, or write %23")
	}
	if s[0] != '/' {
		s = "/" + s
	}
	u.Path = s
	return nil
}

func (u *URL) setUser(info string) (err error) {
	name, password, hasPassword := strings.Cut(info, ":")
	u.HasUsername, u.HasPassword = true, hasPassword
	if u.Username, err = url.PathUnescape(name); err == nil {
		u.Password, err = url.PathUnescape(password)
	}
	if err != nil {
		return errors.New("user name or password of the target holds % without two hexadecimal digits: write %25 for a percent sign")
	}
	// [MQTT-1.5.4-1] [MQTT-1.5.4-2]
	if !utf8.ValidString(u.Username) || strings.ContainsRune(u.Username, 0) {
		return errors.New("user name of the target must be UTF-8 without U+0000")
	}
	return checkText("user name of the target", u.Username)
}

func (u *URL) setHostPort(s string) error {
	host, port, hasPort, err := splitHostPort(s)
	if err != nil {
		return err
	}
	if u.Host, err = checkHost(host); err != nil {
		return err
	}
	u.Port = u.Transport().Port()
	if !hasPort {
		return nil
	}
	u.HasPort = true
	u.Port, err = parsePort(port)
	return err
}

// splitHostPort splits "[::1]:1883", "::1", "host:1883" and "host".
func splitHostPort(s string) (host, port string, hasPort bool, err error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		if !closed || rest != "" && rest[0] != ':' {
			return "", "", false, errors.New("target has brackets that do not match: write [::1]:1883")
		}
		if !isIPv6(host) {
			return "", "", false, errors.New("target has no IPv6 address in its brackets: write [::1]:1883")
		}
		port, hasPort = strings.CutPrefix(rest, ":")
		return host, port, hasPort, nil
	}
	if isIPv6(s) {
		return s, "", false, nil
	}
	host, port, hasPort = strings.Cut(s, ":")
	if strings.Contains(port, ":") {
		return "", "", false, errors.New("target has several colons and is not an IPv6 address: write host:port or [::1]:1883")
	}
	return host, port, hasPort, nil
}

func isIPv6(s string) bool {
	ip, err := netip.ParseAddr(unescapeZone(s))
	return err == nil && ip.Is6() && !strings.ContainsFunc(ip.Zone(), oddInHost)
}

// unescapeZone removes the escape that a URL has before an IPv6 zone. The zone 25
// itself needs none. [RFC 6874 2]
func unescapeZone(s string) string {
	if ip, zone, ok := strings.Cut(s, "%25"); ok && zone != "" {
		return ip + "%" + zone
	}
	return s
}

// checkHost returns the host without the escape of its IPv6 zone.
func checkHost(s string) (string, error) {
	if isIPv6(s) {
		return unescapeZone(s), nil
	}
	switch {
	case s == "":
		return "", errors.New("target has no host: write mqtt://host:1883")
	case len(s) > 253:
		return "", errors.New("target's host is over 253 characters, the limit of DNS names")
	case strings.ContainsFunc(s, oddInHost):
		return "", errors.New("target's host holds a character that DNS names and IP addresses do not have")
	}
	return s, nil
}

// oddInHost reports characters of neither DNS names nor names of interfaces.
func oddInHost(r rune) bool {
	return r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
}

// parsePort reads a port, 1 to 65535.
func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("port must be 1-65535")
	}
	return int(n), nil
}
