package dial

import (
	"syscall"
	"testing"
)

func TestShareLocalPorts(t *testing.T) {
	port, _ := listen(t, "127.0.0.1:0")
	nc, err := routesTo("127.0.0.1", port, "127.0.0.1").Dialer(0).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	raw, err := nc.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	value := 0
	if e := raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_IP, ipBindAddressNoPort) }); e != nil || err != nil || value != 1 {
		t.Errorf("IP_BIND_ADDRESS_NO_PORT is %d (%v, %v)", value, e, err)
	}
}
