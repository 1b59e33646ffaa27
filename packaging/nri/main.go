// Command discnice-nri is an NRI plugin: it brings annotations of a pod that begin with io.discnice. to its containers, where
// discnice-runc reads them, and refuses a container whose annotations are wrong before it is made.
//
// What an annotation means, and whether it is right, only `discnice oci-runtime` knows, which is asked (docs/adr/0041-nri.md).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

const (
	prefix  = "io.discnice."
	strict  = prefix + "strict"
	handler = "discnice"
)

type plugin struct{ program string }

// CreateContainer adds what the pod says to the container.
func (p *plugin) CreateContainer(ctx context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjustment, all := &api.ContainerAdjustment{}, map[string]string{}
	for key, value := range pod.GetAnnotations() {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		all[key] = value
		if _, own := container.GetAnnotations()[key]; !own {
			adjustment.AddAnnotation(key, value)
		}
	}
	for key, value := range container.GetAnnotations() {
		if strings.HasPrefix(key, prefix) {
			all[key] = value
		}
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	if err := p.check(ctx, all); err != nil {
		return nil, nil, err
	}
	if all[strict] == "true" && pod.GetRuntimeHandler() != handler {
		return nil, nil, fmt.Errorf("%s: the runtime class %q does not hold limits; set runtimeClassName: %s", strict, pod.GetRuntimeHandler(), handler)
	}
	return adjustment, nil, nil
}

// check asks discnice whether a container with these annotations would be started.
func (p *plugin) check(ctx context.Context, annotations map[string]string) error {
	bundle, err := os.MkdirTemp("", "discnice-nri-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bundle)
	config, err := json.Marshal(map[string]any{"annotations": annotations})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600); err != nil {
		return err
	}
	var told bytes.Buffer
	asked := exec.CommandContext(ctx, p.program, "oci-runtime", "--", "check", "--bundle", bundle)
	asked.Stderr = &told
	err = asked.Run()
	if line := strings.TrimSpace(told.String()); err != nil && line != "" {
		return errors.New(line)
	}
	return err
}

// Configure takes the path of discnice from the plugin's file of settings, 10-discnice.conf, where there is one.
func (p *plugin) Configure(_ context.Context, config, _, _ string) (api.EventMask, error) {
	if path := strings.TrimSpace(config); path != "" {
		p.program = path
	}
	return 0, nil
}

func main() {
	var options []stub.Option
	// The engine names plugins that it starts.
	if os.Getenv(api.PluginIdxEnvVar) == "" {
		options = append(options, stub.WithPluginName("discnice"), stub.WithPluginIdx("10"))
	}
	made, err := stub.New(&plugin{"/usr/bin/discnice"}, options...)
	if err == nil {
		err = made.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "discnice-nri:", err)
		os.Exit(1)
	}
}
