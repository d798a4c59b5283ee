package packet

// Signatures that the following commits fill in.

type Scanner struct{ buf []byte }

func NewScanner(buf []byte, maxPacketSize int) *Scanner             { return &Scanner{buf: buf} }
func (s *Scanner) Space() []byte                                    { return s.buf }
func (s *Scanner) Advance(n int)                                    {}
func (s *Scanner) Next() (f Frame, ok bool, err error)              { return }
func (s *Scanner) Buffered() int                                    { return 0 }
func (s *Scanner) Attach(buf []byte)                                {}
func (s *Scanner) Detach() []byte                                   { return nil }
func (c *Connect) Append(dst []byte) ([]byte, error)                { return dst, nil }
func (c *Connect) Decode(f Frame) error                             { return nil }
func (p *Connack) Append(dst []byte, v Version) ([]byte, error)     { return dst, nil }
func (p *Connack) Decode(f Frame, v Version) error                  { return nil }
func (p *Publish) Append(dst []byte, v Version) ([]byte, error)     { return dst, nil }
func (p *Publish) Decode(f Frame, v Version) error                  { return nil }
func (p *Publish) ParseProperties(dst *Properties) error            { return nil }
func (p *Publish) SetProperties(src *Properties) error              { return nil }
func (p *Ack) Append(dst []byte, v Version) ([]byte, error)         { return dst, nil }
func (p *Ack) Decode(f Frame, v Version) error                      { return nil }
func (p *Subscribe) Append(dst []byte, v Version) ([]byte, error)   { return dst, nil }
func (p *Subscribe) Decode(f Frame, v Version) error                { return nil }
func (p *Suback) Append(dst []byte, v Version) ([]byte, error)      { return dst, nil }
func (p *Suback) Decode(f Frame, v Version) error                   { return nil }
func (p *Unsubscribe) Append(dst []byte, v Version) ([]byte, error) { return dst, nil }
func (p *Unsubscribe) Decode(f Frame, v Version) error              { return nil }
func (p *Unsuback) Append(dst []byte, v Version) ([]byte, error)    { return dst, nil }
func (p *Unsuback) Decode(f Frame, v Version) error                 { return nil }
func (p *Disconnect) Append(dst []byte, v Version) ([]byte, error)  { return dst, nil }
func (p *Disconnect) Decode(f Frame, v Version) error               { return nil }
func (p *Auth) Append(dst []byte, v Version) ([]byte, error)        { return dst, nil }
func (p *Auth) Decode(f Frame, v Version) error                     { return nil }
func AppendPingreq(dst []byte) []byte                               { return dst }
func AppendPingresp(dst []byte) []byte                              { return dst }
func AppendAck(dst []byte, t Type, id uint16) []byte                { return dst }
func DecodePing(f Frame) error                                      { return nil }

type PublishDecoder struct{ last []byte }

func (d *PublishDecoder) Decode(p *Publish, f Frame, v Version) error { return nil }

func AppendProperties(dst []byte, t Type, p *Properties) ([]byte, error) { return dst, nil }
func ParseProperties(dst *Properties, t Type, raw []byte) error          { return nil }

type Template struct{ packet []byte }

func NewTemplate(p *Publish, v Version) (*Template, error)    { return nil, nil }
func (t *Template) Append(dst []byte, id uint16) []byte       { return dst }
func (t *Template) Size() int                                 { return 0 }
func (t *Template) QoS() byte                                 { return 0 }
func (t *Template) PayloadLen() int                           { return 0 }
func (t *Template) PayloadOffset() int                        { return 0 }
func ValidateTopicName(s string) error                        { return nil }
func ValidateTopicFilter(s string) error                      { return nil }
func SplitShared(filter string) (group, rest string, ok bool) { return }
func MatchTopic(filter, topic string) bool                    { return false }
func ValidateUTF8(b []byte) error                             { return nil }
func Format(f Frame, v Version) string                        { return "" }
