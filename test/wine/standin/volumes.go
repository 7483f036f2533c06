package standin

func volumeOperations() map[Op]operation {
	return map[Op]operation{
		OpFindVolumes:            {"FindVolumes", false, runFindVolumes},
		OpVolumePathNames:        {"VolumePathNames", false, runVolumePathNames},
		OpSetVolumeMountPoint:    {"SetVolumeMountPoint", false, runSetVolumeMountPoint},
		OpDeleteVolumeMountPoint: {"DeleteVolumeMountPoint", false, runDeleteVolumeMountPoint},
		OpVolumeInformation:      {"VolumeInformation", false, runVolumeInformation},
		OpDiskFreeSpace:          {"DiskFreeSpace", false, runDiskFreeSpace},
	}
}

func runFindVolumes(c *call) error {
	if err := c.read(); err != nil {
		return err
	}
	names, err := c.node.FindVolumes(c.ctx)
	if err != nil {
		return err
	}
	c.out.texts(names)
	return nil
}

func runVolumePathNames(c *call) error {
	volume := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	paths, err := c.node.VolumePathNames(c.ctx, volume)
	if err != nil {
		return err
	}
	c.out.texts(paths)
	return nil
}

func runSetVolumeMountPoint(c *call) error {
	path, volume := c.in.text(), c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	return c.node.SetVolumeMountPoint(c.ctx, path, volume)
}

func runDeleteVolumeMountPoint(c *call) error {
	path := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	return c.node.DeleteVolumeMountPoint(c.ctx, path)
}

func runVolumeInformation(c *call) error {
	root := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	info, err := c.node.VolumeInformation(c.ctx, root)
	if err != nil {
		return err
	}
	c.out.text(info.FileSystem)
	c.out.text(info.Label)
	c.out.u32(info.Serial)
	c.out.u32(info.Flags)
	return nil
}

func runDiskFreeSpace(c *call) error {
	path := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	totalBytes, freeBytes, err := c.node.DiskFreeSpace(c.ctx, path)
	if err != nil {
		return err
	}
	c.out.u64(totalBytes)
	c.out.u64(freeBytes)
	return nil
}
