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

// scramMethod is the one Authentication Method of this broker. [RFC 7677]
const scramMethod = "SCRAM-SHA-256"

// scramIterations is the least that RFC 7677 section 4 allows: connecting is to
// be measured here, and half of the work is the client's.
const scramIterations = 4096

// saltSize is the length of every salt, in bytes.
const saltSize = 16

// errBadProof: the password is another one, or there is no such user. Who asks
// is not told which.
var errBadProof = errors.New("user name or password is wrong")

// scramKeys are what is kept of a password. [RFC 5802 section 3]
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

// Users are the user names and passwords that a broker knows. Of a password
// salted keys are kept and, once it was given in a CONNECT, a keyed hash. It may
// be used from many goroutines.
type Users struct {
	keys   map[string]scramKeys
	secret []byte   // for the salts of users that there are not, and of given
	given  sync.Map // by user name, the hash of the password as it was given
}

// A User is somebody who may connect.
type User struct{ Name, Password string }

// NewUsers takes the users that there are; the same one twice is no fault if
// the password is. Both are printable ASCII characters, one at least, which
// SCRAM takes as they are. Deriving a user's keys takes about a millisecond of
// CPU time. The errors say which user of the list is meant, and never a name or a password.
func NewUsers(list []User) (*Users, error) {
	u := &Users{keys: make(map[string]scramKeys, len(list)), secret: []byte(rand.Text())}
	for i, one := range list {
		if !text.IsASCII(one.Name) || !text.IsASCII(one.Password) {
			return nil, fmt.Errorf("user %d of %d: name and password must be printable ASCII characters", i+1, len(list))
		}
		if _, twice := u.keys[one.Name]; twice {
			if !u.check(one.Name, one.Password) {
				return nil, fmt.Errorf("user %d of %d: the same name is there before, with another password", i+1, len(list))
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

// find returns the keys of a user, and of somebody who is none such as no
// password has: what is asked of both looks the same, and takes as long.
func (u *Users) find(name string) (keys scramKeys, known bool) {
	if keys, known = u.keys[name]; known {
		return keys, true
	}
	return scramKeys{sign(u.secret, "salt "+name)[:saltSize], sign(u.secret, "stored "+name), sign(u.secret, "server "+name)}, false
}

// check reports whether the password is the user's. Only the right one is
// quick, from its second time on: that a key is slow to derive shall not be what
// is measured where thousands connect. Who has another is not told how it differs.
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

// scramServer is the server side of one exchange without channel binding. Its
// zero value but for users and nonce is at the start.
type scramServer struct {
	users *Users
	nonce func() string
	user  string

	keys                scramKeys
	known               bool
	header, bare, first string // the client's GS2 header and first message, and the answer
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
	fields := strings.SplitN(bare, ",", 3) // behind the nonce are extensions, to be ignored
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

// unescapeName undoes =2C and =3D. No other equals sign may be there.
func unescapeName(s string) (string, bool) {
	left := strings.NewReplacer("=2C", "", "=3D", "").Replace(s)
	return strings.NewReplacer("=2C", ",", "=3D", "=").Replace(s), s != "" && !strings.Contains(left, "=")
}

// end judges the client-final-message and answers it with the
// server-final-message. The error is errBadProof for a wrong password, an
// unknown user included.
func (s *scramServer) end(message string) (string, error) {
	at := strings.LastIndex(message, ",p=")
	if at < 0 {
		return "", errors.New("client-final-message has no proof")
	}
	binding, rest, _ := strings.Cut(message[:at], ",")
	nonce, _, _ := strings.Cut(rest, ",")
	switch {
	case binding != "c="+base64.StdEncoding.EncodeToString([]byte(s.header)):
		return "", errors.New("client-final-message has another channel binding than the first")
	case subtle.ConstantTimeCompare([]byte(nonce), []byte("r="+s.whole)) != 1:
		return "", errors.New("client-final-message has another nonce")
	}
	proof, err := base64.StdEncoding.DecodeString(message[at+3:])
	if err != nil || len(proof) != sha256.Size {
		return "", errors.New("client-final-message has a proof that is none")
	}
	text := s.bare + "," + s.first + "," + message[:at]
	subtle.XORBytes(proof, proof, sign(s.keys.stored, text))
	stored := sha256.Sum256(proof)
	if subtle.ConstantTimeCompare(stored[:], s.keys.stored) != 1 || !s.known {
		return "", errBadProof
	}
	return "v=" + base64.StdEncoding.EncodeToString(sign(s.keys.server, text)), nil
}
