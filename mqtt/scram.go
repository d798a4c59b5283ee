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

	"github.com/mqttload/mqttload/internal/text"
)

// Bounds of the iteration count that a broker may ask for. RFC 7677 section 4
// requires at least 4,096. The maximum is more than password stores use; deriving a
// key, which cannot be interrupted, then takes a quarter of a second.
const (
	minIterations = 4096
	maxIterations = 1_000_000
)

// A SCRAM is the client side of SCRAM-SHA-256 without channel binding, RFC 5802 and
// RFC 7677: an [Authenticator] for one connection.
type SCRAM struct {
	// Keys caches derived keys for all SCRAMs that share it; nil caches none.
	Keys *SCRAMKeys

	user, password string
	nonce          func() string
	bare           string // the client-first-message without its header
	ours           string // this client's nonce
	signature      []byte // expected from the broker
	done           bool   // the broker has proved that it knows the password
	keys           scramKeys
}

// keyID identifies keys: a hash of password, salt and iteration count.
type keyID [sha256.Size]byte

// scramKeys are the keys derived from a password, a salt and an iteration count.
// Deriving them is slow by design. [RFC 5802 section 3]
type scramKeys struct {
	id             keyID
	client, server []byte
}

// SCRAMKeys is a cache of derived keys for many [SCRAM]s: those with the same
// password, salt and iteration count derive their keys once. The zero value is
// ready to use, from any number of goroutines.
type SCRAMKeys struct {
	mu    sync.Mutex
	cache map[keyID]func() (scramKeys, error)
}

// maxCached bounds the cache, because a broker may send a new salt each time.
const maxCached = 100_000

// get returns the keys with that id. It calls derive if they are not in the cache.
func (k *SCRAMKeys) get(id keyID, derive func() (scramKeys, error)) (scramKeys, error) {
	if k == nil {
		return derive()
	}
	k.mu.Lock()
	keys := k.cache[id]
	if keys == nil {
		if k.cache == nil || len(k.cache) >= maxCached {
			k.cache = make(map[keyID]func() (scramKeys, error))
		}
		keys = sync.OnceValues(derive)
		k.cache[id] = keys
	}
	k.mu.Unlock()
	return keys()
}

// NewSCRAM returns the authenticator for a user. Both user name and password must
// be printable ASCII and not empty, so that they need no preparation by RFC 4013.
// The error contains neither.
func NewSCRAM(user, password string) (*SCRAM, error) {
	for _, s := range []string{user, password} {
		if !text.IsASCII(s) {
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

// Continue returns the client-final-message as the answer to the
// server-first-message, and nil as the answer to the server-final-message.
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

// derive sets the keys, unless those of the last exchange fit.
func (s *SCRAM) derive(salt []byte, iterations int) (err error) {
	id := keyID(sha256.Sum256(fmt.Appendf(nil, "%q %q %d", s.password, salt, iterations)))
	if s.keys.client != nil && s.keys.id == id {
		return nil
	}
	s.keys, err = s.Keys.get(id, func() (scramKeys, error) {
		salted, err := pbkdf2.Key(sha256.New, s.password, salt, iterations, sha256.Size)
		if err != nil {
			return scramKeys{}, fmt.Errorf("derive the key: %w", err)
		}
		return scramKeys{id, sign(salted, "Client Key"), sign(salted, "Server Key")}, nil
	})
	return err
}

// Finish checks the server-final-message, which proves that the broker knows the
// password too.
func (s *SCRAM) Finish(data []byte) error {
	if s.done && len(data) == 0 {
		return nil
	}
	if len(data) == 0 {
		return errors.New("the broker accepted without proving that it knows the password")
	}
	if err := serverError(string(data)); err != nil {
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

// serverError returns the server-error that a broker may send instead of a message,
// or nil. [RFC 5802 section 7]
func serverError(message string) error {
	if value, ok := strings.CutPrefix(message, "e="); ok {
		return fmt.Errorf("the broker reports the error %.40q", value)
	}
	return nil
}

// parseFirst reads "r=NONCE,s=SALT,i=COUNT".
func (s *SCRAM) parseFirst(first string) (nonce string, salt []byte, iterations int, err error) {
	if err := serverError(first); err != nil {
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
