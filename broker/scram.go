package broker

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mqttload/mqttload/internal/text"
)

// scramMethod is the only Authentication Method of this broker. [RFC 7677]
const scramMethod = "SCRAM-SHA-256"

// scramIterations is the minimum of RFC 7677 section 4: a run measures how fast
// clients connect, and half of this work is the client's.
const scramIterations = 4096

// saltSize is the length of every salt, in bytes.
const saltSize = 16

// errBadProof means a wrong password or an unknown user. Clients are not told
// which of the two it was.
var errBadProof = errors.New("user name or password is wrong")

// scramKeys are stored in place of a password. [RFC 5802 section 3]
type scramKeys struct {
	salt           []byte
	stored, server []byte
}

func newScramKeys(password string, salt []byte) (scramKeys, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return scramKeys{}, fmt.Errorf("derive the key: %w", err)
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	return scramKeys{salt, stored[:], sign(salted, "Server Key")}, nil
}

func sign(key []byte, message string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}

// Users are the user names and passwords that a broker accepts. It stores salted
// keys of each password and, once a CONNECT has carried the password, a keyed
// hash. Several goroutines may use it.
type Users struct {
	keys   map[string]scramKeys
	secret []byte   // key of the hashes in given, and of the salts of unknown users
	given  sync.Map // by user name, the hash of the right password of a CONNECT
}

// A User may connect with this name and password.
type User struct{ Name, Password string }

// NewUsers makes Users of a list. A name may occur twice with the same password.
// Names and passwords consist of at least one printable ASCII character, because
// SCRAM uses these without preparation. Deriving a user's keys takes about a
// millisecond of CPU time. An error gives the position of the user in the list,
// and never a name or a password.
func NewUsers(list []User) (*Users, error) {
	u := &Users{keys: make(map[string]scramKeys, len(list)), secret: []byte(rand.Text())}
	for i, one := range list {
		if !text.IsASCII(one.Name) || !text.IsASCII(one.Password) {
			return nil, fmt.Errorf("user %d of %d: name and password must be printable ASCII characters", i+1, len(list))
		}
		if _, twice := u.keys[one.Name]; twice {
			if !u.check(one.Name, one.Password) {
				return nil, fmt.Errorf("user %d of %d: an earlier user has this name and another password", i+1, len(list))
			}
			continue
		}
		salt := make([]byte, saltSize)
		_, _ = rand.Read(salt) // it never fails
		keys, err := newScramKeys(one.Password, salt)
		if err != nil {
			return nil, err
		}
		u.keys[one.Name] = keys
	}
	return u, nil
}

// find returns the keys of a user. For an unknown name it returns keys that match
// no password, so that an exchange looks the same and takes as long.
func (u *Users) find(name string) (keys scramKeys, known bool) {
	if keys, known = u.keys[name]; known {
		return keys, true
	}
	return scramKeys{sign(u.secret, "salt "+name)[:saltSize], sign(u.secret, "stored "+name), sign(u.secret, "server "+name)}, false
}

// check reports whether the password is the user's. Deriving the keys is slow on
// purpose, and would dominate a run in which thousands of clients connect; so the
// right password is recognised by its hash from the second time on. A wrong one
// always takes the slow path, and its client learns nothing about the difference.
func (u *Users) check(name, password string) bool {
	hash := sign(u.secret, "given "+name+"\x00"+password)
	if before, ok := u.given.Load(name); ok && hmac.Equal(before.([]byte), hash) {
		return true
	}
	keys, known := u.find(name)
	got, err := newScramKeys(password, keys.salt)
	ok := err == nil && subtle.ConstantTimeCompare(got.stored, keys.stored) == 1 && known
	if ok {
		u.given.Store(name, hash)
	}
	return ok
}

// scramServer is the server side of one exchange without channel binding. A new
// exchange sets users and nonce only.
type scramServer struct {
	users *Users
	nonce func() string
	user  string

	keys                scramKeys
	known               bool
	header, bare, first string // the client's GS2 header and first message, and the server's first message
	whole               string // both nonces
}

// begin answers the client-first-message with the server-first-message.
// [RFC 5802 section 7]
func (s *scramServer) begin(message string) (string, error) {
	flag, rest, _ := strings.Cut(message, ",")
	authzid, bare, ok := strings.Cut(rest, ",")
	switch {
	case !ok:
		return "", errors.New("client-first-message is not n,,n=USER,r=NONCE")
	case strings.HasPrefix(flag, "p="):
		return "", errors.New("client-first-message asks for channel binding")
	case flag != "n" && flag != "y":
		return "", errors.New("client-first-message has no channel binding flag")
	case authzid != "":
		return "", errors.New("client-first-message asks to act as another user")
	}
	fields := strings.SplitN(bare, ",", 3) // extensions after the nonce are ignored
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "n=") || !strings.HasPrefix(fields[1], "r=") {
		return "", errors.New("client-first-message is not n,,n=USER,r=NONCE")
	}
	if s.user, ok = unescapeName(fields[0][2:]); !ok || !text.IsASCII(fields[1][2:]) {
		return "", errors.New("client-first-message has a bad user name or nonce")
	}
	s.keys, s.known = s.users.find(s.user)
	s.header, s.bare, s.whole = flag+",,", bare, fields[1][2:]+s.nonce()
	s.first = fmt.Sprintf("r=%s,s=%s,i=%d", s.whole, base64.StdEncoding.EncodeToString(s.keys.salt), scramIterations)
	return s.first, nil
}

// unescapeName decodes =2C and =3D. Any other equals sign is an error.
func unescapeName(s string) (string, bool) {
	left := strings.NewReplacer("=2C", "", "=3D", "").Replace(s)
	return strings.NewReplacer("=2C", ",", "=3D", "=").Replace(s), s != "" && !strings.Contains(left, "=")
}

// end checks the client-final-message and answers it with the
// server-final-message. The error is errBadProof for a wrong password or an
// unknown user.
func (s *scramServer) end(message string) (string, error) {
	at := strings.LastIndex(message, ",p=")
	if at < 0 {
		return "", errors.New("client-final-message has no proof")
	}
	binding, rest, _ := strings.Cut(message[:at], ",")
	nonce, _, _ := strings.Cut(rest, ",")
	switch {
	case binding != "c="+base64.StdEncoding.EncodeToString([]byte(s.header)):
		return "", errors.New("client-final-message has a different channel binding from the first message")
	case subtle.ConstantTimeCompare([]byte(nonce), []byte("r="+s.whole)) != 1:
		return "", errors.New("client-final-message has a different nonce")
	}
	proof, err := base64.StdEncoding.DecodeString(message[at+3:])
	if err != nil || len(proof) != sha256.Size {
		return "", errors.New("client-final-message has a malformed proof")
	}
	text := s.bare + "," + s.first + "," + message[:at]
	subtle.XORBytes(proof, proof, sign(s.keys.stored, text))
	stored := sha256.Sum256(proof)
	if subtle.ConstantTimeCompare(stored[:], s.keys.stored) != 1 || !s.known {
		return "", errBadProof
	}
	return "v=" + base64.StdEncoding.EncodeToString(sign(s.keys.server, text)), nil
}
