package dial

import "syscall"

// ipBindAddressNoPort is IP_BIND_ADDRESS_NO_PORT of linux/in.h, which package
// syscall lacks.
const ipBindAddressNoPort = 24

// shareLocalPorts makes the kernel choose the local port when it connects, not
// when it binds: a port is then taken for one broker only, and all ports of the
// range are used, odd and even. Kernels before 4.2 do not know it, and do
// without. [ip(7)]
func shareLocalPorts(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipBindAddressNoPort, 1)
	})
}
