package packet

import "fmt"

// ReasonCode is a Reason Code of MQTT 5, or a return code of CONNACK or SUBACK in 3.x.
// In MQTT 5, 0x80 and above are errors. [MQTT5 2.4]
type ReasonCode byte

// Reason codes. The value 0x00 has three names: Success, Normal disconnection (in
// DISCONNECT) and Granted QoS 0 (in SUBACK). [MQTT5 table 2-6]
const (
	ReasonSuccess                     ReasonCode = 0x00
	ReasonNormalDisconnection         ReasonCode = 0x00
	ReasonGrantedQoS0                 ReasonCode = 0x00
	ReasonGrantedQoS1                 ReasonCode = 0x01
	ReasonGrantedQoS2                 ReasonCode = 0x02
	ReasonDisconnectWithWill          ReasonCode = 0x04
	ReasonNoMatchingSubscribers       ReasonCode = 0x10
	ReasonNoSubscriptionExisted       ReasonCode = 0x11
	ReasonContinueAuthentication      ReasonCode = 0x18
	ReasonReAuthenticate              ReasonCode = 0x19
	ReasonUnspecifiedError            ReasonCode = 0x80
	ReasonMalformedPacket             ReasonCode = 0x81
	ReasonProtocolError               ReasonCode = 0x82
	ReasonImplementationSpecificError ReasonCode = 0x83
	ReasonUnsupportedProtocolVersion  ReasonCode = 0x84
	ReasonClientIdentifierNotValid    ReasonCode = 0x85
	ReasonBadUserNameOrPassword       ReasonCode = 0x86
	ReasonNotAuthorized               ReasonCode = 0x87
	ReasonServerUnavailable           ReasonCode = 0x88
	ReasonServerBusy                  ReasonCode = 0x89
	ReasonBanned                      ReasonCode = 0x8A
	ReasonServerShuttingDown          ReasonCode = 0x8B
	ReasonBadAuthenticationMethod     ReasonCode = 0x8C
	ReasonKeepAliveTimeout            ReasonCode = 0x8D
	ReasonSessionTakenOver            ReasonCode = 0x8E
	ReasonTopicFilterInvalid          ReasonCode = 0x8F
	ReasonTopicNameInvalid            ReasonCode = 0x90
	ReasonPacketIdentifierInUse       ReasonCode = 0x91
	ReasonPacketIdentifierNotFound    ReasonCode = 0x92
	ReasonReceiveMaximumExceeded      ReasonCode = 0x93
	ReasonTopicAliasInvalid           ReasonCode = 0x94
	ReasonPacketTooLarge              ReasonCode = 0x95
	ReasonMessageRateTooHigh          ReasonCode = 0x96
	ReasonQuotaExceeded               ReasonCode = 0x97
	ReasonAdministrativeAction        ReasonCode = 0x98
	ReasonPayloadFormatInvalid        ReasonCode = 0x99
	ReasonRetainNotSupported          ReasonCode = 0x9A
	ReasonQoSNotSupported             ReasonCode = 0x9B
	ReasonUseAnotherServer            ReasonCode = 0x9C
	ReasonServerMoved                 ReasonCode = 0x9D
	ReasonSharedSubNotSupported       ReasonCode = 0x9E
	ReasonConnectionRateExceeded      ReasonCode = 0x9F
	ReasonMaximumConnectTime          ReasonCode = 0xA0
	ReasonSubIDsNotSupported          ReasonCode = 0xA1
	ReasonWildcardSubNotSupported     ReasonCode = 0xA2
)

var reasonNames = [256]string{
	ReasonSuccess:                     "Success",
	ReasonGrantedQoS1:                 "Granted QoS 1",
	ReasonGrantedQoS2:                 "Granted QoS 2",
	ReasonDisconnectWithWill:          "Disconnect with Will Message",
	ReasonNoMatchingSubscribers:       "No matching subscribers",
	ReasonNoSubscriptionExisted:       "No subscription existed",
	ReasonContinueAuthentication:      "Continue authentication",
	ReasonReAuthenticate:              "Re-authenticate",
	ReasonUnspecifiedError:            "Unspecified error",
	ReasonMalformedPacket:             "Malformed Packet",
	ReasonProtocolError:               "Protocol Error",
	ReasonImplementationSpecificError: "Implementation specific error",
	ReasonUnsupportedProtocolVersion:  "Unsupported Protocol Version",
	ReasonClientIdentifierNotValid:    "Client Identifier not valid",
	ReasonBadUserNameOrPassword:       "Bad User Name or Password",
	ReasonNotAuthorized:               "Not authorized",
	ReasonServerUnavailable:           "Server unavailable",
	ReasonServerBusy:                  "Server busy",
	ReasonBanned:                      "Banned",
	ReasonServerShuttingDown:          "Server shutting down",
	ReasonBadAuthenticationMethod:     "Bad authentication method",
	ReasonKeepAliveTimeout:            "Keep Alive timeout",
	ReasonSessionTakenOver:            "Session taken over",
	ReasonTopicFilterInvalid:          "Topic Filter invalid",
	ReasonTopicNameInvalid:            "Topic Name invalid",
	ReasonPacketIdentifierInUse:       "Packet Identifier in use",
	ReasonPacketIdentifierNotFound:    "Packet Identifier not found",
	ReasonReceiveMaximumExceeded:      "Receive Maximum exceeded",
	ReasonTopicAliasInvalid:           "Topic Alias invalid",
	ReasonPacketTooLarge:              "Packet too large",
	ReasonMessageRateTooHigh:          "Message rate too high",
	ReasonQuotaExceeded:               "Quota exceeded",
	ReasonAdministrativeAction:        "Administrative action",
	ReasonPayloadFormatInvalid:        "Payload format invalid",
	ReasonRetainNotSupported:          "Retain not supported",
	ReasonQoSNotSupported:             "QoS not supported",
	ReasonUseAnotherServer:            "Use another server",
	ReasonServerMoved:                 "Server moved",
	ReasonSharedSubNotSupported:       "Shared Subscriptions not supported",
	ReasonConnectionRateExceeded:      "Connection rate exceeded",
	ReasonMaximumConnectTime:          "Maximum connect time",
	ReasonSubIDsNotSupported:          "Subscription Identifiers not supported",
	ReasonWildcardSubNotSupported:     "Wildcard Subscriptions not supported",
}

// String returns the specification's name of c, such as "Not authorized", or
// "ReasonCode(0x55)" for a value without one.
func (c ReasonCode) String() string {
	if name := reasonNames[c]; name != "" {
		return name
	}
	return fmt.Sprintf("ReasonCode(0x%02X)", byte(c))
}

// IsError reports whether c is 0x80 or greater: an error in MQTT 5, and in SUBACK of
// 3.1.1. [MQTT5 2.4]
func (c ReasonCode) IsError() bool { return c >= 0x80 }

var connackReturns = [...]string{
	"Connection Accepted",
	"Connection Refused, unacceptable protocol version",
	"Connection Refused, identifier rejected",
	"Connection Refused, Server unavailable",
	"Connection Refused, bad user name or password",
	"Connection Refused, not authorized",
}

// ConnackReturnString returns the specification's name of a CONNACK return code of 3.x,
// 0 to 5, or "ReturnCode(6)" for another value. [MQTT311 table 3.1]
func ConnackReturnString(code ReasonCode) string {
	if int(code) < len(connackReturns) {
		return connackReturns[code]
	}
	return fmt.Sprintf("ReturnCode(%d)", byte(code))
}

// reasonSet is a set of reason codes: a bitmap.
type reasonSet [4]uint64

func newReasonSet(codes ...ReasonCode) (s reasonSet) {
	for _, c := range codes {
		s[c>>6] |= 1 << (c & 63)
	}
	return s
}

func (s *reasonSet) has(c ReasonCode) bool { return s[c>>6]>>(c&63)&1 != 0 }

var publishReasons = newReasonSet(0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99)

var releaseReasons = newReasonSet(0x00, 0x92)

// validReasons are the reason codes that each packet type may have in MQTT 5.
var validReasons = [16]reasonSet{
	// [MQTT-3.2.2-8]
	CONNACK: newReasonSet(0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C,
		0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F),
	PUBACK:  publishReasons, // [MQTT-3.4.2-1]
	PUBREC:  publishReasons, // [MQTT-3.5.2-1]
	PUBREL:  releaseReasons, // [MQTT-3.6.2-1]
	PUBCOMP: releaseReasons, // [MQTT-3.7.2-1]
	// [MQTT-3.9.3-2]
	SUBACK:   newReasonSet(0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2),
	UNSUBACK: newReasonSet(0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91), // [MQTT-3.11.3-2]
	// For 0x8C the standard contradicts itself: table 2-6 allows it in DISCONNECT, table
	// 3-10 does not have it. It is allowed here. [MQTT-3.14.2-1]
	DISCONNECT: newReasonSet(0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F,
		0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2),
	AUTH: newReasonSet(0x00, 0x18, 0x19), // [MQTT-3.15.2-1]
}

// subackReasons3 are the return codes of SUBACK in 3.1.1. [MQTT-3.9.3-2]
var subackReasons3 = newReasonSet(0x00, 0x01, 0x02, 0x80)
