package packet

// Bits of the Connect Flags. [MQTT5 3.1.2.3]
const (
	connectReserved   = 0x01
	connectCleanStart = 0x02
	connectWill       = 0x04
	connectWillRetain = 0x20
	connectPassword   = 0x40
	connectUsername   = 0x80
)

const (
	rulePassword = "a password without a user name needs MQTT 5 [MQTT-3.1.2-22]"
	ruleClientID = "an empty client identifier needs MQTT 5, or 3.1.1 with Clean Session [MQTT-3.1.3-7]"
)

// protocolName returns the Protocol Name of v. [MQTT5 3.1.2.1]
func protocolName(v Version) string {
	if v == V31 {
		return "MQIsdp"
	}
	return "MQTT"
}

// needsClientID reports whether the client identifier must not be empty.
func (c *Connect) needsClientID() bool {
	return c.Version == V31 || c.Version == V311 && !c.CleanStart
}

// Append appends c, encoded for version c.Version, to dst, with the payload in the
// order of [MQTT-3.1.3-1]. It leaves out the properties in 3.x. On error, which is an
// *InvalidError, it returns dst unchanged.
func (c *Connect) Append(dst []byte) ([]byte, error) {
	w := begin(dst, CONNECT)
	c.check(&w)
	w.text("Protocol Name", protocolName(c.Version))
	w.byte(byte(c.Version))
	w.byte(c.flags())
	w.uint16(c.KeepAlive)
	if c.Version == V5 {
		w.properties(CONNECT, &c.Properties)
	}
	// [MQTT-3.1.3-3, MQTT-3.1.3-4]
	w.name("Client Identifier", c.ClientID)
	// [MQTT-3.1.2-9]
	if c.Will != nil {
		c.Will.append(&w, c.Version)
	}
	// [MQTT-3.1.3-12], [MQTT-3.1.3-11] of 3.1.1
	if c.HasUsername {
		w.name("User Name", c.Username)
	}
	if c.HasPassword {
		w.binary("Password", c.Password)
	}
	return w.end()
}

// check finds the faults that do not concern a single field.
func (c *Connect) check(w *writer) {
	switch {
	case !knownVersion(c.Version):
		w.fail("version", ruleVersion)
	// [MQTT-3.1.2-22] of 3.1.1
	case c.HasPassword && !c.HasUsername && c.Version != V5:
		w.fail("Password", rulePassword)
	// [MQTT-3.1.3-7] of 3.1.1
	case c.ClientID == "" && c.needsClientID():
		w.fail("Client Identifier", ruleClientID)
	}
}

func (c *Connect) flags() (b byte) {
	set := func(on bool, flag byte) {
		if on {
			b |= flag
		}
	}
	set(c.CleanStart, connectCleanStart)
	set(c.HasUsername, connectUsername)
	set(c.HasPassword, connectPassword)
	if c.Will != nil {
		b |= connectWill | c.Will.QoS<<3
		set(c.Will.Retain, connectWillRetain)
	}
	return b
}

func (l *Will) append(w *writer, v Version) {
	// [MQTT-3.1.2-12]
	if l.QoS > 2 {
		w.fail("Will QoS", "must be 0, 1 or 2 [MQTT-3.1.2-12]")
	}
	// [MQTT-3.1.3-11], [MQTT-3.1.3-10] of 3.1.1
	if rule := topicNameRule(viewBytes(l.Topic)); rule != "" {
		w.fail("Will Topic", rule)
	}
	if v == V5 {
		w.properties(WillProperties, &l.Properties)
	}
	w.name("Will Topic", l.Topic)
	w.binary("Will Payload", l.Payload)
}

// Decode decodes f, a CONNECT of any version, into c, which does not point into f
// afterwards. The error is a *MalformedError with the reason code for CONNACK: in 3.x
// ReasonUnsupportedProtocolVersion is return code 1, ReasonClientIdentifierNotValid
// is 2, and there is none for others. After an error c.Version is still what the
// client asked for.
func (c *Connect) Decode(f Frame) error {
	*c = Connect{}
	r := open(f, CONNECT, V31)
	name := string(r.text("Protocol Name"))
	c.Version = Version(r.byte("Protocol Version"))
	// [MQTT-3.1.2-1] [MQTT-3.1.2-2]
	if !knownVersion(c.Version) || name != protocolName(c.Version) {
		r.fail(ReasonUnsupportedProtocolVersion, "protocol name and version are not MQTT 3.1, 3.1.1 or 5 [MQTT-3.1.2-2]")
		return r.close()
	}
	// [MQTT-2.1.3-1], but MQTT 3.1 does not use these flags
	if c.Version != V31 && f.Flags() != 0 {
		r.failAt(-r.base, ReasonMalformedPacket, firstByteRule(f.First))
	}
	at := r.off
	flags := r.byte("Connect Flags")
	if rule := connectFlagsRule(flags, c.Version); rule != "" {
		r.failAt(at, ReasonMalformedPacket, rule)
	}
	c.CleanStart = flags&connectCleanStart != 0
	c.KeepAlive = r.uint16("Keep Alive")
	if c.Version == V5 {
		r.properties(CONNECT, &c.Properties)
	}
	c.decodePayload(&r, flags)
	return r.close()
}

// connectFlagsRule returns the rule that flags break in version v, or "".
func connectFlagsRule(flags byte, v Version) string {
	willQoS := flags >> 3 & 3
	switch {
	// [MQTT-3.1.2-3], but MQTT 3.1 does not use the bit
	case flags&connectReserved != 0 && v != V31:
		return "reserved Connect Flag must be 0 [MQTT-3.1.2-3]"
	// [MQTT-3.1.2-11], [MQTT-3.1.2-13] of 3.1.1
	case flags&connectWill == 0 && willQoS != 0:
		return "Will QoS must be 0 without a will [MQTT-3.1.2-11]"
	// [MQTT-3.1.2-12], [MQTT-3.1.2-14] of 3.1.1
	case willQoS == 3:
		return "Will QoS 3 does not exist [MQTT-3.1.2-12]"
	// [MQTT-3.1.2-13], [MQTT-3.1.2-15] of 3.1.1
	case flags&connectWill == 0 && flags&connectWillRetain != 0:
		return "Will Retain must be 0 without a will [MQTT-3.1.2-13]"
	// [MQTT-3.1.2-22] of 3.1.1
	case v != V5 && flags&connectPassword != 0 && flags&connectUsername == 0:
		return rulePassword
	}
	return ""
}

// decodePayload reads the fields in the order of [MQTT-3.1.3-1].
func (c *Connect) decodePayload(r *reader, flags byte) {
	at := r.off
	c.ClientID = string(r.name("Client Identifier"))
	// [MQTT-3.1.3-7] [MQTT-3.1.3-8] of 3.1.1
	if c.ClientID == "" && c.needsClientID() {
		r.failAt(at, ReasonClientIdentifierNotValid, ruleClientID)
	}
	if flags&connectWill != 0 {
		c.Will = decodeWill(r, flags, c.Version)
	}
	// [MQTT-3.1.2-16] [MQTT-3.1.2-17], [MQTT-3.1.2-18] and [MQTT-3.1.2-19] of 3.1.1
	if flags&connectUsername != 0 && !endsEarly(r, c.Version) {
		c.HasUsername, c.Username = true, string(r.name("User Name"))
	}
	// [MQTT-3.1.2-18] [MQTT-3.1.2-19], [MQTT-3.1.2-20] and [MQTT-3.1.2-21] of 3.1.1
	if flags&connectPassword != 0 && !endsEarly(r, c.Version) {
		c.HasPassword, c.Password = true, cloneBinary(r.binary("Password"))
	}
}

// endsEarly reports whether the packet ends before the field of a flag that is set.
// MQTT 3.1 allows that: in its section 3.1 the remaining length takes precedence over
// the User Name and Password flags.
func endsEarly(r *reader, v Version) bool { return v == V31 && r.left() == 0 }

func decodeWill(r *reader, flags byte, v Version) *Will {
	l := &Will{QoS: flags >> 3 & 3, Retain: flags&connectWillRetain != 0}
	if v == V5 {
		r.properties(WillProperties, &l.Properties)
	}
	at := r.off
	topic := r.name("Will Topic")
	if rule := topicNameRule(topic); rule != "" {
		r.failAt(at, ReasonMalformedPacket, "Will Topic "+rule)
	}
	l.Topic = string(topic)
	l.Payload = cloneBinary(r.binary("Will Payload"))
	return l
}
