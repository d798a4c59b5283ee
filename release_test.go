package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// goreleaser is as much of GoReleaser's configuration, version 2, as this
// project uses. Names are those of its schema: an unknown or outdated one does
// not decode.
type goreleaser struct {
	Version     int
	ProjectName string `yaml:"project_name"`
	Before      struct{ Hooks []string }
	Builds      []struct {
		ID, Binary                        string
		Env, Flags, Ldflags, Goos, Goarch []string
		ModTimestamp                      string `yaml:"mod_timestamp"`
	}
	Archives []struct {
		ID              string
		IDs             []string `yaml:"ids"`
		Formats         []string
		FormatOverrides []struct {
			Goos    string
			Formats []string
		} `yaml:"format_overrides"`
		NameTemplate    string `yaml:"name_template"`
		WrapInDirectory bool   `yaml:"wrap_in_directory"`
		Files           []string
	}
	Checksum struct {
		NameTemplate string `yaml:"name_template"`
		Algorithm    string
	}
	NFPMs []struct {
		ID          string
		IDs         []string `yaml:"ids"`
		PackageName string   `yaml:"package_name"`
		Formats     []string
		Description string
		Maintainer  string
		Homepage    string
		License     string
		Section     string
		Bindir      string
		Contents    []struct{ Src, Dst, Type string }
	} `yaml:"nfpms"`
	SBOMs []struct {
		ID        string
		Artifacts string
	} `yaml:"sboms"`
	Snapshot struct {
		VersionTemplate string `yaml:"version_template"`
	}
	Changelog struct {
		Use, Sort string
		Filters   struct{ Exclude []string }
	}
}

func readGoreleaser(t *testing.T) goreleaser {
	b, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	var g goreleaser
	if err := d.Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestReleaseTargets(t *testing.T) {
	g := readGoreleaser(t)
	if g.Version != 2 || len(g.Builds) != 1 {
		t.Fatalf("version %d with %d builds, want 2 with 1", g.Version, len(g.Builds))
	}
	b := g.Builds[0]
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"goos", b.Goos, []string{"linux", "darwin", "windows", "freebsd"}},
		{"goarch", b.Goarch, []string{"amd64", "arm64"}},
		{"flags", b.Flags, []string{"-trimpath"}},
		{"env", b.Env, []string{"CGO_ENABLED=0"}},
		{"packages", g.NFPMs[0].Formats, []string{"deb", "rpm", "apk"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}

// The linker passes over a variable that does not exist.
func TestReleaseSetsVariablesThatExist(t *testing.T) {
	src, err := os.ReadFile("cmd/version.go")
	if err != nil {
		t.Fatal(err)
	}
	decl := regexp.MustCompile(`(?m)^var (.*) string$`).FindSubmatch(src)
	if decl == nil {
		t.Fatal("cmd/version.go declares no string variables")
	}
	declared := strings.Split(string(decl[1]), ", ")
	var set []string
	for _, f := range readGoreleaser(t).Builds[0].Ldflags {
		if m := regexp.MustCompile(`^-X github\.com/mqttload/mqttload/cmd\.(\w+)=`).FindStringSubmatch(f); m != nil {
			set = append(set, m[1])
		}
	}
	slices.Sort(set)
	slices.Sort(declared)
	if !slices.Equal(set, declared) {
		t.Errorf("the linker sets %q, cmd declares %q", set, declared)
	}
}

// Completions are made by the hook before a release; all else has to be here.
func TestReleaseFilesExist(t *testing.T) {
	g := readGoreleaser(t)
	files := g.Archives[0].Files
	for _, c := range g.NFPMs[0].Contents {
		files = append(files, c.Src)
	}
	for _, h := range g.Before.Hooks {
		if strings.HasPrefix(h, "scripts/") {
			files = append(files, h)
		}
	}
	for _, f := range files {
		if strings.HasPrefix(f, "completions/") {
			continue
		}
		if found, err := filepath.Glob(f); err != nil || len(found) == 0 {
			t.Errorf("%s: nothing there (%v)", f, err)
		}
	}
	for _, want := range []string{"LICENSE", "README.md", "CHANGELOG.md", "docs/*", "completions/*"} {
		if !slices.Contains(g.Archives[0].Files, want) {
			t.Errorf("archives lack %s", want)
		}
	}
}

// Data that no test loads goes stale unseen.
func TestEveryConfigIsLoadedByATest(t *testing.T) {
	configs, err := os.ReadDir("configs")
	if err != nil || len(configs) == 0 {
		t.Fatalf("configs: %v, %v", configs, err)
	}
	var tests strings.Builder
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		tests.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs {
		if !strings.Contains(tests.String(), "configs/"+c.Name()) {
			t.Errorf("configs/%s is named by no test", c.Name())
		}
	}
}
