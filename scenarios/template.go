package scenarios

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
)

// templateField is one field of a template payload. Its fixed width gives messages a
// fixed size, so they are filled in place.
type templateField struct {
	verb      byte // i, s, t, d or x
	at, width int
	zeros     bool // padded with zeros, not with spaces
}

// templateWidths are the default widths. Numbers are padded with spaces, which JSON
// allows before them.
var templateWidths = map[byte]int{'i': 7, 's': 10, 't': 19, 'd': 4, 'x': 8}

const maxFieldWidth = 256

// parseTemplate reads text with the fields %i (number of the stream, from 1),
// %s (number of the message), %t (time of sending since 1970: 19 digits are ns,
// 16 us, 13 ms, 10 s), %d and %x (random decimal and hexadecimal digits), each
// followed by a width, which may begin with 0 for padding with zeros: %s010.
func parseTemplate(text string) (Payload, error) {
	p := Payload{Kind: PayloadTemplate, Name: "template:" + strings.TrimPrefix(textName(text), "text:")}
	for {
		before, rest, more := strings.Cut(text, "%")
		p.Data = append(p.Data, before...)
		if !more {
			break
		}
		if strings.HasPrefix(rest, "%") {
			p.Data, text = append(p.Data, '%'), rest[1:]
			continue
		}
		f, after, err := parseField(rest)
		if err != nil {
			return Payload{}, err
		}
		f.at, text = len(p.Data), after
		p.Data = append(p.Data, make([]byte, f.width)...)
		p.template = append(p.template, f)
	}
	if p.Size = len(p.Data); p.Size > maxPayload {
		return Payload{}, overLimit(strconv.Itoa(p.Size))
	}
	if p.template == nil {
		return Payload{}, errors.New("the template has no field such as %i, %s, %t, %d4 or %x8: write text: for content that is always the same")
	}
	return p, nil
}

func parseField(s string) (f templateField, rest string, err error) {
	if s == "" {
		return f, "", errors.New("the template ends with a single %: write %% for a percent sign")
	}
	f.verb = s[0]
	width, known := templateWidths[f.verb]
	if !known {
		return f, "", fmt.Errorf("the template has the unknown field %%%s: known are %%i, %%s, %%t, %%d and %%x; write %%%% for a percent sign", text.Quote(string([]rune(s)[:1])))
	}
	rest = strings.TrimLeft(s[1:], "0123456789")
	digits := s[1 : len(s)-len(rest)]
	if f.zeros = strings.HasPrefix(digits, "0"); f.zeros {
		digits = digits[1:]
	}
	if digits != "" {
		if width, err = strconv.Atoi(digits); err != nil || width < 1 || width > maxFieldWidth {
			return f, "", fmt.Errorf("the field %%%c%s is not 1 to %d wide", f.verb, digits, maxFieldWidth)
		}
	}
	if _, unit := timeUnits[width]; f.verb == 't' && !unit {
		return f, "", fmt.Errorf("the field %%t is %d wide: 19 digits are ns, 16 us, 13 ms and 10 s since 1970", width)
	}
	f.width = width
	return f, rest, nil
}

// timeUnits is the unit of a time, in ns, by its number of digits from 2001 to 2286.
var timeUnits = map[int]int64{19: 1, 16: 1e3, 13: 1e6, 10: 1e9}

// fill writes the field. A number that is too long loses its first digits.
func (f *templateField) fill(dst []byte, stream, seq uint64, now int64, random uint64) {
	switch f.verb {
	case 'i':
		f.number(dst, stream+1)
	case 's':
		f.number(dst, seq)
	case 't':
		f.number(dst, uint64(now/timeUnits[f.width]))
	default:
		f.digits(dst, random)
	}
}

func (f *templateField) number(dst []byte, n uint64) {
	i := len(dst) - 1
	for ; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	pad := byte(' ')
	if f.zeros {
		pad = '0'
	}
	for i--; i >= 0; i-- {
		dst[i] = pad
	}
}

// digits writes random digits. A decimal number does not begin with 0, which JSON
// forbids, unless the field is padded with zeros.
func (f *templateField) digits(dst []byte, random uint64) {
	const hex = "0123456789abcdef"
	base := uint64(10)
	if f.verb == 'x' {
		base = 16
	}
	word := random
	for i := range dst {
		if i%16 == 0 {
			word = scatter(random + uint64(i) + 1)
		}
		if i == 0 && f.verb == 'd' && !f.zeros && len(dst) > 1 {
			dst[0] = hex[1+word%9]
			word /= 9
			continue
		}
		dst[i] = hex[word%base]
		word /= base
	}
}
