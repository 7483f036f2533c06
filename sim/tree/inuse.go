package tree

// VolumeHandles returns how many handles are open on a volume, named by its id,
// or on a share, named `\\server\share`.
func (t *Tree) VolumeHandles(name string) int {
	t.mu.Lock()
	defer t.unlock()
	count := 0
	for _, open := range t.handles {
		if v := open.node.vol; !v.gone && volumeKey(v.linkVolume()) == volumeKey(name) {
			count++
		}
	}
	return count
}
