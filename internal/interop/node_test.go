package interop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nodeModules returns a directory with the modules of node/package-lock.json. npm
// fills it once, outside of the repository, and later runs use it again.
func nodeModules(t *testing.T) string {
	t.Helper()
	need(t, "node")
	lock, err := os.ReadFile("node/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "mqttload-interop", fmt.Sprintf("node-%x", sha256.Sum256(lock))[:17])
	if _, err := os.Stat(dir); err != nil {
		install(t, dir)
	}
	return filepath.Join(dir, "node_modules")
}

// install fills dir completely or not at all.
func install(t *testing.T, dir string) {
	t.Helper()
	npm := need(t, "npm")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tmp, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		lacking(t, "npm ci: %v: the npm registry has to be reachable\n%s", err, out)
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // no other process was faster
			t.Fatal(err)
		}
	}
}

// startNode starts a script in the folder node.
func startNode(t *testing.T, script string, args ...string) *process {
	t.Helper()
	t.Setenv("NODE_PATH", nodeModules(t))
	return start(t, need(t, "node"), append([]string{filepath.Join("node", script)}, args...)...)
}
