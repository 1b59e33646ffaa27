package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

// engine is NRI's own part of a container engine, which starts the plugin as containerd does.
func engine(t *testing.T) *adaptation.Adaptation {
	folder := t.TempDir()
	plugins := filepath.Join(folder, "plugins")
	if made, err := exec.Command("go", "build", "-o", filepath.Join(plugins, "10-discnice"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	settings := filepath.Join(folder, "10-discnice.conf")
	if err := os.WriteFile(settings, []byte(os.Getenv("DISCNICE")), 0o600); err != nil {
		t.Fatal(err)
	}
	nothing := func(ctx context.Context, started adaptation.SyncCB) error {
		_, err := started(ctx, nil, nil)
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) { return nil, nil }
	engine, err := adaptation.New("test", "1.0", nothing, update,
		adaptation.WithPluginPath(plugins), adaptation.WithPluginConfigPath(folder), adaptation.WithDisabledExternalConnections())
	if err == nil {
		err = engine.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Stop)
	return engine
}

// created is what the container is adjusted by, and why it was refused.
func created(engine *adaptation.Adaptation, handler string, pod, own map[string]string) (map[string]string, string) {
	reply, err := engine.CreateContainer(context.Background(), &adaptation.CreateContainerRequest{
		Pod:       &api.PodSandbox{Id: "pod", Name: "pod", RuntimeHandler: handler, Annotations: pod},
		Container: &api.Container{Id: "container", PodSandboxId: "pod", Name: "container", Annotations: own},
	})
	if err != nil {
		return nil, err.Error()
	}
	return reply.GetAdjust().GetAnnotations(), ""
}

func TestPods(t *testing.T) {
	if os.Getenv("DISCNICE") == "" {
		t.Fatal("DISCNICE names no program; use make nri-test")
	}
	engine := engine(t)
	disk := map[string]string{"io.discnice.disk": "5M", "example.org/other": "1"}
	for _, one := range []struct {
		what, handler string
		pod, own      map[string]string
		disk, refused string
	}{
		{"a pod's annotation", "discnice", disk, nil, "5M", ""},
		{"no annotation", "discnice", nil, nil, "", ""},
		{"the container's own one", "discnice", disk, map[string]string{"io.discnice.disk": "9M"}, "", ""},
		{"no rate", "discnice", map[string]string{"io.discnice.disk": "quick"}, nil, "", "annotation io.discnice.disk"},
		{"no option", "discnice", map[string]string{"io.discnice.speed": "5M"}, nil, "", "annotation io.discnice.speed"},
		{"another runtime", "runc", disk, nil, "5M", ""},
		{"another runtime, strict", "runc", map[string]string{"io.discnice.disk": "5M", "io.discnice.strict": "true"}, nil, "", "set runtimeClassName"},
	} {
		found, why := created(engine, one.handler, one.pod, one.own)
		if !strings.Contains(why, one.refused) || (why == "") != (one.refused == "") {
			t.Errorf("%s: %q", one.what, why)
		}
		if found["io.discnice.disk"] != one.disk || found["example.org/other"] != "" {
			t.Errorf("%s: %v", one.what, found)
		}
		t.Logf("%s: %v %s", one.what, found, why)
	}
}
