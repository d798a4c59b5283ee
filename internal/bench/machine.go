package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// Machine describes the machine of the load generator. Unknown fields stay empty.
func Machine() result.Environment {
	return result.Environment{
		OS: runtime.GOOS, Arch: runtime.GOARCH,
		Kernel: firstLine("/proc/sys/kernel/osrelease"), CPU: cpuModel(),
		Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), NoFile: RaiseNoFile(),
	}
}

func firstLine(path string) string {
	b, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// cpuModel reads the processor's name. ARM kernels give only numbers, which are
// left out.
func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "Model", "cpu model":
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}

// LoadAverage is the load average of the last minute, nil if unknown.
func LoadAverage() *float64 {
	first, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil
	}
	return &v
}
