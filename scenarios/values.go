package scenarios

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// parseDuration reads a Go duration of at least 0: "250ms", "1m30s". A bare
// number is refused, because it means seconds to some tools and milliseconds
// to others.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case s == "":
		return 0, errors.New("is empty: write a duration such as 30s, 250ms or 1m30s")
	case strings.HasPrefix(s, "-") && (isNumber(s[1:]) || d < 0):
		return 0, errors.New("must not be negative")
	case isNumber(s):
		// time.ParseDuration lets a bare 0 pass.
		return 0, fmt.Errorf("%s has no unit: write %ss", text.Quote(s), s)
	case err != nil && dayPattern.MatchString(s):
		return 0, fmt.Errorf("%s is not a duration: write days as hours, 24h", text.Quote(s))
	case err != nil:
		return 0, fmt.Errorf("%s is not a duration: write one such as 30s, 250ms or 1m30s", text.Quote(s))
	}
	return d, nil
}

var (
	dayPattern    = regexp.MustCompile(`^[0-9.]+ ?(d|days?|w|weeks?)$`)
	numberPattern = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
)

func isNumber(s string) bool { return numberPattern.MatchString(s) }

// parseQoS reads 0, 1 or 2.
func parseQoS(s string) (byte, error) {
	if len(s) == 1 && s[0] >= '0' && s[0] <= '2' {
		return s[0] - '0', nil
	}
	return 0, errors.New("qos must be 0, 1 or 2")
}

// protocolHints are what other tools call the versions.
var protocolHints = map[string]string{
	"3":   "3 means 3.1 to some tools and 3.1.1 to others: write 3.1 or 3.1.1",
	"4":   "4 is the protocol level of 3.1.1: write 3.1.1",
	"311": "write 3.1.1", "mqtt311": "write 3.1.1", "mqttv311": "write 3.1.1", "v311": "write 3.1.1",
	"31": "write 3.1", "mqtt31": "write 3.1", "mqttv31": "write 3.1", "v31": "write 3.1", "30": "write 3.1",
	"50": "write 5", "v5": "write 5", "mqtt5": "write 5", "mqttv5": "write 5", "v50": "write 5", "mqtt50": "write 5", "mqttv50": "write 5",
}

// parseProtocol reads "3.1", "3.1.1" or "5", and nothing else: other spellings
// are answered with a hint.
func parseProtocol(s string) (packet.Version, error) {
	for _, v := range []packet.Version{packet.V31, packet.V311, packet.V5} {
		if s == v.String() {
			return v, nil
		}
	}
	if hint, ok := protocolHints[strings.ToLower(strings.NewReplacer(".", "", " ", "", "-", "").Replace(s))]; ok {
		return 0, errors.New("protocol must be 3.1, 3.1.1 or 5: " + hint)
	}
	return 0, errors.New("protocol must be 3.1, 3.1.1 or 5")
}

// parseWhole reads a whole number in [least, most]. A leading zero is refused:
// YAML 1.1 reads 010 as 8, and people as 10.
func parseWhole(key, s string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if isDigits(s) && len(s) > 1 && s[0] == '0' {
		return 0, fmt.Errorf("%s must be written without leading zeros: write %s", key, strings.TrimLeft(s[:len(s)-1], "0")+s[len(s)-1:])
	}
	if err != nil || n < least || n > most || !isDigits(strings.TrimPrefix(s, "-")) {
		return 0, fmt.Errorf("%s must be a whole number from %d to %d", key, least, most)
	}
	return n, nil
}

func parseFlag(key, s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%s must be true or false", key)
}

// parseSwitch is [parseFlag] for what other tools write as on and off.
func parseSwitch(key, s string) (bool, error) {
	switch s {
	case "on", "true":
		return true, nil
	case "off", "false":
		return false, nil
	}
	return false, fmt.Errorf("%s must be on or off", key)
}

// maxRate is beyond any machine, in messages or connections per second.
const maxRate = 10_000_000

func parseRate(key, s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !isNumber(s) || math.IsInf(n, 0) || n > maxRate {
		return 0, fmt.Errorf("%s must be a number from 0 to %d, per second", key, maxRate)
	}
	return n, nil
}

// parseTime reads a duration in [least, most] under the name of its key.
func parseTime(key, s string, least, most time.Duration) (time.Duration, error) {
	d, err := parseDuration(s)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), text.Quote(s)):
		return 0, err
	case err != nil:
		return 0, fmt.Errorf("%s %w", key, err)
	case d == 0 && least > 0:
		return 0, fmt.Errorf("%s must be more than 0", key)
	case d < least || d > most:
		return 0, fmt.Errorf("%s must be from %s to %s", key, text.Duration(least), text.Duration(most))
	}
	return d, nil
}

// parseSeconds is [parseTime] for times that MQTT carries in whole seconds.
func parseSeconds(key, s string, most int64) (time.Duration, error) {
	d, err := parseTime(key, s, 0, time.Duration(most)*time.Second)
	if err == nil && d%time.Second != 0 {
		return 0, fmt.Errorf("%s must be whole seconds: MQTT carries no fractions", key)
	}
	return d, err
}
