package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/internal/strictyaml"
	"github.com/mqttload/mqttload/internal/text"
)

//go:embed builtin/*.yaml
var builtinFiles embed.FS

// Builtins returns a new copy of each built-in scenario, sorted by name.
func Builtins() []*Scenario {
	var list []*Scenario
	for _, name := range builtinNames() {
		list = append(list, builtin(name))
	}
	return list
}

func builtinNames() []string {
	entries, err := fs.ReadDir(builtinFiles, "builtin")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names)
	return names
}

// builtin parses a built-in scenario. The tests check that all of them are sound.
func builtin(name string) *Scenario {
	data, err := builtinFiles.ReadFile("builtin/" + name + ".yaml")
	if err != nil {
		panic(err)
	}
	s, err := Parse(name+".yaml", data)
	if err != nil {
		panic(err)
	}
	return s
}

// Open returns the built-in scenario of that name, or else reads a scenario
// file. The error is of type [Errors].
func Open(nameOrFile string) (*Scenario, error) {
	names := builtinNames()
	if slices.Contains(names, nameOrFile) {
		return builtin(nameOrFile), nil
	}
	data, err := file.Read(nameOrFile, strictyaml.MaxSize)
	switch {
	case err == nil:
		return Parse(nameOrFile, data)
	case errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(nameOrFile, `/\.`):
		return nil, Errors{{Msg: unknownScenario(nameOrFile, names)}}
	}
	return nil, Errors{{Msg: fmt.Sprintf("scenario file %s: %v", text.Quote(nameOrFile), err)}}
}

func unknownScenario(name string, names []string) string {
	msg := fmt.Sprintf("unknown scenario %q", text.Short(name))
	if near := text.Nearest(name, names); near != "" {
		msg += fmt.Sprintf(", did you mean %q?", near)
	}
	return msg + ": built in are " + strings.Join(names, ", ") + "; write the path of a YAML file for another one"
}
