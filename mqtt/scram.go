package mqtt

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Bounds of the iteration count that a broker may ask for: RFC 7677 section 4
// wants 4,096 at least. Deriving a key cannot be interrupted: a million takes a
// quarter of a second, and is more than password stores ask for.
const (
	minIterations = 4096
	maxIterations = 1_000_000
)

// A SCRAM is the client side of SCRAM-SHA-256 without channel binding: an
// [Authenticator] of RFC 5802 and RFC 7677. It serves one connection.
type SCRAM struct {
	// Keys, if there, keeps what is derived for others with the same password.
	Keys *SCRAMKeys

	user, password string
	nonce          func() string
	bare           string // the first message without its header
	ours           string // nonce
	signature      []byte // awaited from the broker
	done           bool   // the broker has proved that it knows the password
	keys           scramKeys
}

// keysOf is a hash of a password, a salt and an iteration count.
type keysOf [sha256.Size]byte

// scramKeys are what a password comes to with one salt and iteration count, kept
// for the next exchange: deriving them is meant to be slow. [RFC 5802 section 3]
type scramKeys struct {
	of             keysOf
	client, server []byte
}

// SCRAMKeys keeps the keys of many [SCRAM]s: a key is derived once, however many
// of them have the same password and are given the same salt and iteration
// count. The zero value is ready; it may be used from many goroutines.
type SCRAMKeys struct {
	mu   sync.Mutex
	kept map[keysOf]func() (scramKeys, error)
}

// maxKept bounds the keys that are kept: a broker may think of another salt each
// time.
const maxKept = 100_000

// get returns the keys of of, from derive for the first who asks.
func (k *SCRAMKeys) get(of keysOf, derive func() (scramKeys, error)) (scramKeys, error) {
	if k == nil {
		return derive()
	}
	k.mu.Lock()
	known := k.kept[of]
	if known == nil {
		if k.kept == nil || len(k.kept) >= maxKept {
			k.kept = make(map[keysOf]func() (scramKeys, error))
		}
		known = sync.OnceValues(derive)
		k.kept[of] = known
	}
	k.mu.Unlock()
	return known()
}

// NewSCRAM returns the authenticator for a user. User name and password are of
// printable ASCII characters, one at least, which need no preparation by RFC
// 4013; the error names neither.
func NewSCRAM(user, password string) (*SCRAM, error) {
	for _, s := range []string{user, password} {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, errors.New("SCRAM-SHA-256: user name and password must be printable ASCII")
		}
	}
	return &SCRAM{user: user, password: password, nonce: rand.Text}, nil
}

// Method returns "SCRAM-SHA-256".
func (*SCRAM) Method() string { return "SCRAM-SHA-256" }

// Start returns the client-first-message. [RFC 5802 section 7]
func (s *SCRAM) Start() ([]byte, error) {
	name := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(s.user)
	s.ours, s.signature, s.done = s.nonce(), nil, false
	s.bare = "n=" + name + ",r=" + s.ours
	return []byte("n,," + s.bare), nil
}

// Continue answers the server-first-message with the client-final-message, and
// a server-final-message with nothing.
func (s *SCRAM) Continue(data []byte) ([]byte, error) {
	if s.signature != nil {
		return nil, s.Finish(data)
	}
	nonce, salt, iterations, err := s.parseFirst(string(data))
	if err != nil {
		return nil, err
	}
	if err := s.derive(salt, iterations); err != nil {
		return nil, err
	}
	final := "c=biws,r=" + nonce
	message := s.bare + "," + string(data) + "," + final
	stored := sha256.Sum256(s.keys.client)
	proof := make([]byte, len(s.keys.client))
	subtle.XORBytes(proof, s.keys.client, sign(stored[:], message))
	s.signature = sign(s.keys.server, message)
	return []byte(final + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

// derive makes the keys, unless they are there.
func (s *SCRAM) derive(salt []byte, iterations int) (err error) {
	of := keysOf(sha256.Sum256(fmt.Appendf(nil, "%q %q %d", s.password, salt, iterations)))
	if s.keys.client != nil && s.keys.of == of {
		return nil
	}
	s.keys, err = s.Keys.get(of, func() (scramKeys, error) {
		salted, err := pbkdf2.Key(sha256.New, s.password, salt, iterations, sha256.Size)
		if err != nil {
			return scramKeys{}, fmt.Errorf("derive the key: %w", err)
		}
		return scramKeys{of, sign(salted, "Client Key"), sign(salted, "Server Key")}, nil
	})
	return err
}

// Finish checks the server-final-message: that the broker knows the password too.
func (s *SCRAM) Finish(data []byte) error {
	if s.done && len(data) == 0 {
		return nil
	}
	if len(data) == 0 {
		return errors.New("the broker accepts without proving that it knows the password")
	}
	if err := refusal(string(data)); err != nil {
		return err
	}
	v, ok := strings.CutPrefix(string(data), "v=")
	if !ok || s.signature == nil {
		return fmt.Errorf("server-final-message %.40q is not v=SIGNATURE", data)
	}
	got, err := base64.StdEncoding.DecodeString(v)
	if err != nil || !hmac.Equal(got, s.signature) {
		return errors.New("the broker's signature is wrong: it does not know the password")
	}
	s.done = true
	return nil
}

// refusal is the server-error-value that a broker sends in the place of a
// message, or nil. [RFC 5802 section 7]
func refusal(message string) error {
	if value, ok := strings.CutPrefix(message, "e="); ok {
		return fmt.Errorf("the broker refuses: %.40q", value)
	}
	return nil
}

// parseFirst reads "r=NONCE,s=SALT,i=COUNT".
func (s *SCRAM) parseFirst(first string) (nonce string, salt []byte, iterations int, err error) {
	if err := refusal(first); err != nil {
		return "", nil, 0, err
	}
	fields := strings.SplitN(first, ",", 4)
	if len(fields) < 3 || !strings.HasPrefix(fields[0], "r=") || !strings.HasPrefix(fields[1], "s=") || !strings.HasPrefix(fields[2], "i=") {
		return "", nil, 0, fmt.Errorf("server-first-message %.40q is not r=NONCE,s=SALT,i=COUNT", first)
	}
	nonce = fields[0][2:]
	if !strings.HasPrefix(nonce, s.ours) {
		return "", nil, 0, errors.New("the broker's nonce does not begin with this client's")
	}
	if nonce == s.ours {
		return "", nil, 0, errors.New("the broker's nonce adds nothing to this client's")
	}
	if salt, err = base64.StdEncoding.DecodeString(fields[1][2:]); err != nil || len(salt) == 0 {
		return "", nil, 0, errors.New("the broker's salt is not base64")
	}
	iterations, err = strconv.Atoi(fields[2][2:])
	if err != nil || iterations < minIterations || iterations > maxIterations {
		return "", nil, 0, fmt.Errorf("iteration count %.20q is not within %d..%d", fields[2][2:], minIterations, maxIterations)
	}
	return nonce, salt, iterations, nil
}

func sign(key []byte, message string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}
