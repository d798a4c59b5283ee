package scenarios

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/tlsconf"
)

// maxBinary is the longest Binary Data and UTF-8 Encoded String, in bytes. [MQTT5 1.5.4, 1.5.6]
const maxBinary = 65_535

func same(s string) string { return s }

func targetFields() []field {
	urls := listField("url", repeated, func(_, text string) (URL, error) { return ParseURL(text) },
		func(c *Case) *[]URL { return &c.Target.URLs }, URL.String)
	urls.secret = true
	set := urls.assign
	urls.assign = func(s *Scenario, dir string, texts []string) error {
		s.host, s.port = "", ""
		return set(s, dir, texts)
	}
	return in("target", urls,
		timeField("connect_timeout", time.Millisecond, time.Hour, func(c *Case) *time.Duration { return &c.Target.ConnectTimeout }),
		field{key: "connect_rate", parse: func(_, text string) (value, error) {
			n, err := parseRate("connect_rate", text)
			return plain(text, func(c *Case) { c.Target.ConnectRate = n }), err
		}, get: func(s *Scenario) any { return s.base.Target.ConnectRate }},
		listField("source_ip", commas, func(_, text string) (string, error) {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				return "", fmt.Errorf("source_ip must be an IP address of this machine")
			}
			return ip.String(), nil
		}, func(c *Case) *[]string { return &c.Target.SourceIPs }, same),
		omitDefault(false, boolField("reconnect", func(c *Case) *bool { return &c.Target.Reconnect })),
		omitDefault(1, intField("start_number", 0, maxClientNumber, func(c *Case) *int { return &c.Clients.StartNumber })),
		omitDefault(false, boolField("follow_server_reference", func(c *Case) *bool { return &c.Target.FollowServerReference })),
	)
}

func clientFields() []field {
	list := []field{
		stringField("topic", checkTopic, func(c *Case) *string { return &c.Clients.Topic }),
		stringField("client_id", checkClientID, func(c *Case) *string { return &c.Clients.ClientID }),
		{key: "username", parse: func(_, text string) (value, error) {
			return plain(text, func(c *Case) { c.Clients.Username, c.Clients.HasUsername = text, true }), checkUsername(text)
		}, get: func(s *Scenario) any {
			if !s.base.Clients.HasUsername {
				return nil
			}
			return s.base.Clients.Username
		}},
		passwordField("password", func(s *Scenario, _, text string) error {
			if err := checkVars("password", text, "icur"); err != nil {
				// The usual message would show the character after the percent sign.
				return errors.New("password has an unknown variable: known are %i, %c, %u, %r; write %% for a percent sign, or give password_file, which has no variables")
			}
			s.base.Clients.Password, s.base.Clients.HasPassword = text, true
			return nil
		}, func(s *Scenario) any {
			if s.base.Clients.HasPassword {
				return "***"
			}
			return nil
		}),
		passwordField("password_file", func(s *Scenario, dir, text string) error {
			s.passwordFile = resolve(dir, text)
			return nil
		}, func(s *Scenario) any { return orNil(s.passwordFile) }),
		passwordField("password_env", func(s *Scenario, _, text string) error {
			s.passwordEnv = text
			return nil
		}, func(s *Scenario) any { return orNil(s.passwordEnv) }),
		secondsField("keepalive", maxKeepAlive, func(c *Case) *time.Duration { return &c.Clients.KeepAlive }),
		boolField("clean_start", func(c *Case) *bool { return &c.Clients.CleanStart }),
		secondsField("session_expiry", maxExpiry, func(c *Case) *time.Duration { return &c.Clients.SessionExpiry }),
		boolField("retain", func(c *Case) *bool { return &c.Clients.Retain }),
		{key: "credentials", parse: func(dir, text string) (value, error) {
			if text == "" {
				return value{}, errors.New("credentials is empty")
			}
			path := resolve(dir, text)
			return plain(path, func(c *Case) { c.Clients.Credentials = path }), nil
		}, get: func(s *Scenario) any { return orNil(s.base.Clients.Credentials) }},
		// Each keeps its case.
		listField("user_properties", repeated, parseProperty, func(c *Case) *[]packet.UserProperty { return &c.Clients.UserProperties },
			func(p packet.UserProperty) string { return p.Name + "=" + p.Value }),
	}
	return in("clients", slices.Concat(list, propertyFields(), authFields(), willFields())...)
}

// passwordField is one of the three ways to give a password. Each replaces the
// others.
func passwordField(key string, assign func(s *Scenario, dir, text string) error, get func(*Scenario) any) field {
	return field{key: key, secret: key == "password", many: single, get: get,
		assign: func(s *Scenario, dir string, texts []string) error {
			if texts[0] == "" && key != "password" {
				return fmt.Errorf("%s is empty", key)
			}
			// [MQTT5 3.1.3.6] a password is Binary Data, whose length is two bytes.
			if len(texts[0]) > maxBinary {
				return errors.New("password is over MQTT's limit of 65,535 bytes")
			}
			s.passwordFile, s.passwordEnv = "", ""
			s.base.Clients.Password, s.base.Clients.HasPassword = "", false
			return assign(s, dir, texts[0])
		}}
}

func parseProperty(_, s string) (packet.UserProperty, error) {
	name, val, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return packet.UserProperty{}, errors.New("user_properties must be written NAME=VALUE")
	}
	for _, part := range []string{name, val} {
		// [MQTT-1.5.7-1]
		if err := packet.ValidateUTF8([]byte(part)); err != nil {
			return packet.UserProperty{}, fmt.Errorf("user_properties: %s %s", text.Quote(part), ruleOf(err))
		}
	}
	return packet.UserProperty{Name: name, Value: val}, checkVars("user_properties", val, "icur")
}

func ruleOf(err error) string {
	var invalid *packet.InvalidError
	if errors.As(err, &invalid) {
		return invalid.Rule
	}
	return err.Error()
}

// tlsField is one string of the TLS options.
func tlsField(key string, path bool, at func(*tlsconf.Options) *string) field {
	return field{key: key, parse: func(dir, text string) (value, error) {
		if text == "" {
			return value{}, fmt.Errorf("%s is empty", key)
		}
		if path {
			text = resolve(dir, text)
		}
		return plain(text, func(c *Case) { *at(&c.TLS) = text }), nil
	}, get: func(s *Scenario) any { return orNil(*at(&s.base.TLS)) }}
}

func versionField(key string, at func(*tlsconf.Options) *uint16) field {
	return field{key: key, parse: func(_, text string) (value, error) {
		v, err := tlsconf.ParseVersion(text)
		return plain(text, func(c *Case) { *at(&c.TLS) = v }), err
	}, get: func(s *Scenario) any {
		v := *at(&s.base.TLS)
		if v == 0 {
			return nil
		}
		return strings.TrimPrefix(tls.VersionName(v), "TLS ")
	}}
}

func tlsFields() []field {
	cafile := listField("cafile", repeated, func(dir, text string) (string, error) {
		if text == "" {
			return "", errors.New("cafile is empty")
		}
		return resolve(dir, text), nil
	}, func(c *Case) *[]string { return &c.TLS.CAFiles }, same)
	alpn := listField("alpn", commas, func(_, text string) (string, error) {
		// [RFC 7301 3.1]
		if text == "" || len(text) > 255 {
			return "", errors.New("alpn names have 1 to 255 bytes")
		}
		return text, nil
	}, func(c *Case) *[]string { return &c.TLS.ALPN }, same)
	curves := listField("curves", commas, func(_, text string) (tls.CurveID, error) { return tlsconf.ParseCurve(text) },
		func(c *Case) *[]tls.CurveID { return &c.TLS.Curves }, tlsconf.CurveName)
	return in("tls",
		cafile,
		tlsField("capath", true, func(o *tlsconf.Options) *string { return &o.CAPath }),
		tlsField("cert", true, func(o *tlsconf.Options) *string { return &o.CertFile }),
		tlsField("key", true, func(o *tlsconf.Options) *string { return &o.KeyFile }),
		tlsField("key_password_file", true, func(o *tlsconf.Options) *string { return &o.KeyPasswordFile }),
		tlsField("servername", false, func(o *tlsconf.Options) *string { return &o.ServerName }),
		alpn,
		versionField("tls_min", func(o *tlsconf.Options) *uint16 { return &o.MinVersion }),
		versionField("tls_max", func(o *tlsconf.Options) *uint16 { return &o.MaxVersion }),
		curves,
		omitDefault(false, boolField("insecure", func(c *Case) *bool { return &c.TLS.Insecure })),
		omitDefault(false, boolField("tls_resume", func(c *Case) *bool { return &c.TLS.Resume })),
	)
}

// password returns the password of all clients as a pattern for [Expand]. One from
// a file or the environment is usually generated, so its percent signs do not begin
// variables. A line end is not part of it.
func (s *Scenario) password() (string, bool, error) {
	switch {
	case s.passwordFile != "":
		data, err := readAtMost(s.passwordFile, maxBinary, "65,535")
		if err != nil {
			return "", false, fmt.Errorf("password file %s: %w", text.Quote(s.passwordFile), err)
		}
		// Windows editors write a byte order mark.
		line := firstLine(strings.TrimPrefix(string(data), "\ufeff"))
		if line == "" {
			return "", false, fmt.Errorf("password file %s: its first line is empty: write the password there", text.Quote(s.passwordFile))
		}
		return literal(line), true, nil
	case s.passwordEnv != "":
		if s.LookupEnv == nil {
			return "", false, errors.New("password_env: the environment cannot be read here")
		}
		secret, ok := s.LookupEnv(s.passwordEnv)
		if !ok {
			return "", false, fmt.Errorf("password_env: the variable %s is not set", text.Quote(s.passwordEnv))
		}
		return literal(withoutLineEnd(secret)), true, nil
	}
	return s.base.Clients.Password, s.base.Clients.HasPassword, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r")
}

func withoutLineEnd(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r") }

// literal is the pattern that [Expand] turns into text.
func literal(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// passwordFileIsPublic reports whether every user may read the password file.
func (s *Scenario) passwordFileIsPublic() bool {
	if s.passwordFile == "" {
		return false
	}
	info, err := os.Stat(s.passwordFile)
	return err == nil && info.Mode().Perm()&0o004 != 0
}

// hostURL is the target that was given as host and port.
func (s *Scenario) hostURL() (URL, error) {
	host := s.host
	if host == "" {
		host = "localhost"
	}
	if strings.Contains(host, "://") || strings.Contains(host, "@") {
		return URL{}, errors.New("host takes a name or an address: give a URL as url")
	}
	if isIPv6(host) {
		host = "[" + host + "]"
	}
	if s.port == "" {
		return ParseURL(host)
	}
	port, err := parsePort(s.port)
	if err != nil {
		return URL{}, err
	}
	return ParseURL(strings.TrimSuffix(host, ":"+s.port) + ":" + strconv.Itoa(port))
}

func checkTopic(pattern string) error {
	if err := checkVars("topic", pattern, "icur"); err != nil {
		return err
	}
	// Client id and user name are checked once all is set: see checkExpanded.
	return checkTopicName(Expand(pattern, sampleVars(1)))
}

func checkClientID(pattern string) error {
	if err := checkVars("client_id", pattern, "iur"); err != nil {
		return err
	}
	// [MQTT-3.1.3-4]
	return checkText("client_id", Expand(pattern, sampleVars(1)))
}

func checkUsername(pattern string) error {
	if err := checkVars("username", pattern, "icr"); err != nil {
		return err
	}
	// [MQTT-3.1.3-11]
	return checkText("username", Expand(pattern, sampleVars(1)))
}

// sampleVars stand for the values that a run will give to variables.
func sampleVars(client int) Vars {
	return Vars{I: client, C: strings.Repeat("c", 23), U: "user", R: sampleRunID}
}

// AxisKeys lists the keys that may be an axis.
func AxisKeys() []string {
	var keys []string
	for _, f := range fields {
		if f.axis {
			keys = append(keys, f.key)
		}
	}
	return slices.Clip(keys)
}
