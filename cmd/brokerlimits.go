package cmd

import (
	"strconv"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// Limits that the broker command announces to MQTT 5 clients by default, because
// most brokers have them and every client must respect them.
const (
	defaultReceiveMaximum = 1024
	defaultMaxKeepAlive   = time.Minute
)

// brokerLimits reads the flags that limit clients.
func brokerLimits(s settings, bad *bench.Faults) broker.Config {
	cfg := broker.Config{ReceiveMaximum: defaultReceiveMaximum, MaxKeepAlive: defaultMaxKeepAlive}
	if one := s["receive-maximum"]; one.source > 0 {
		n, err := strconv.ParseUint(one.value(), 10, 16)
		if err != nil || n == 0 {
			bad.Usage("", "%s %s: must be a whole number from 1 to 65535", one.place, printable(one.value()))
		}
		cfg.ReceiveMaximum = uint16(n)
	}
	if one := s["max-keepalive"]; one.source > 0 {
		d, err := time.ParseDuration(one.value())
		if err != nil || d != d.Truncate(time.Second) || d < 0 || d > 65_535*time.Second {
			bad.Usage("write a time as 60s, or 0s for no limit", "%s %s: must be whole seconds up to 65535s", one.place, printable(one.value()))
		}
		cfg.MaxKeepAlive = d
	}
	if one := s["refuse-filter"]; one.source > 0 {
		cfg.RefusedFilters = one.values
		for _, filter := range one.values {
			if err := packet.ValidateTopicFilter(filter); err != nil {
				bad.Usage("", "%s %s: %v", one.place, printable(filter), err)
			}
		}
	}
	return cfg
}
