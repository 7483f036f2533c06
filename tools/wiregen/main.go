// Command wiregen makes the Go code of wire/proto. It compiles the files in
// process and runs the generator of the protobuf module pinned in tools/go.mod,
// so that every machine writes the same bytes without protoc.
//
//	go -C tools run ./wiregen -root ../wire/proto -package csiwindows/wire/v1 -out ../wire/wirepb
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	root := flag.String("root", "", "folder that import paths start from")
	pkg := flag.String("package", "", "folder of the .proto files, below the root")
	out := flag.String("out", "", "folder of the generated Go files")
	flag.Parse()
	if err := run(context.Background(), *root, *pkg, *out); err != nil {
		fmt.Fprintln(os.Stderr, "wiregen:", err)
		os.Exit(1)
	}
}

// run writes one Go file for each .proto file of a folder.
func run(ctx context.Context, root, pkg, out string) error {
	names, err := protoFiles(root, pkg)
	if err != nil {
		return err
	}
	request, err := compile(ctx, root, names)
	if err != nil {
		return err
	}
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return err
	}
	for _, file := range plugin.Files {
		internal_gengo.GenerateFile(plugin, file)
	}
	response := plugin.Response()
	if response.Error != nil {
		return fmt.Errorf("generate: %s", response.GetError())
	}
	for _, file := range response.File {
		target := filepath.Join(out, path.Base(file.GetName()))
		if err := os.WriteFile(target, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// protoFiles returns the import paths of the .proto files of a folder, sorted.
func protoFiles(root, pkg string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(pkg)))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".proto" {
			names = append(names, path.Join(pkg, entry.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no .proto file in %s below %s", pkg, root)
	}
	return names, nil
}

// compile parses and links the files, imports first as the generator wants them.
func compile(ctx context.Context, root string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{root}},
		SourceInfoMode: protocompile.SourceInfoStandard, // comments become doc comments
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String("paths=source_relative"),
	}
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		file := files.FindFileByPath(name)
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).Path())
		}
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(file))
	}
	for _, name := range names {
		add(name)
	}
	return request, nil
}
