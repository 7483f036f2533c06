package probe

// at makes a signature of one part.
func at(name string, offset int64, bytes string) signature {
	return signature{name, []part{{offset, bytes}}}
}

// signatures are tried in order: what stands further up says more. Sources are
// the on-disk descriptions of the formats, as far as they are published, and
// the magic numbers other systems recognise them by.
var signatures = []signature{
	// Encryption and volume managers first: what they hold is not to be seen.
	at("BitLocker", 3, "-FVE-FS-"),
	at("BitLocker To Go", 0x1A8, "\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01"),
	at("LUKS", 0, "LUKS\xba\xbe"),
	at("LUKS2 (second header)", 0x4000, "SKUL\xba\xbe"),
	at("LUKS2 (second header)", 0x8000, "SKUL\xba\xbe"),
	at("LUKS2 (second header)", 0x10000, "SKUL\xba\xbe"),
	at("LVM2 physical volume", 0, "LABELONE"),
	at("LVM2 physical volume", 512, "LABELONE"),
	at("LVM2 physical volume", 1024, "LABELONE"),
	at("LVM2 physical volume", 1536, "LABELONE"),
	at("LVM1 physical volume", 0, "HM\x01\x00"),
	at("Linux RAID", 0, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"),
	at("Linux RAID", 4096, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"),
	at("bcache", 4096+24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
	at("bcachefs", 4096+24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
	at("VDO", 0, "dmvdo001"),
	at("Ceph BlueStore", 0, "bluestore block device"),
	at("Oracle ASM", 32, "ORCLDISK"),
	at("Oracle ASM", 40, "ORCLDISK"),
	at("VMware VMFS", 0x100000, "\x0d\xd0\x01\xc0"),
	at("VMware VMFS", 0x100000, "\x5e\xf1\xab\x2f"),
	at("Storage Spaces", 0, "SPACEDB "),
	at("Storage Spaces", 4096, "SPACEDB "),
	at("dynamic disk (LDM)", 6*512, "PRIVHEAD"),
	at("dynamic disk (LDM)", -1<<20, "PRIVHEAD"),
	at("ZFS", 128<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00"),
	at("ZFS", 128<<10, "\x00\x00\x00\x00\x00\xba\xb1\x0c"),

	// File systems of Windows.
	at("NTFS", 3, "NTFS    "),
	at("ReFS", 3, "ReFS\x00"),
	at("exFAT", 3, "EXFAT   "),
	at("FAT32", 0x52, "FAT32   "),
	at("FAT16", 0x36, "FAT16   "),
	at("FAT12", 0x36, "FAT12   "),
	at("FAT", 0x36, "FAT     "),

	// File systems of others.
	at("XFS", 0, "XFSB"),
	at("btrfs", 64<<10+64, "_BHRfS_M"),
	at("F2FS", 1024, "\x10\x20\xf5\xf2"),
	at("JFS", 32<<10, "JFS1"),
	at("ReiserFS", 64<<10+52, "ReIsEr"),
	at("ReiserFS", 8<<10+52, "ReIsEr"),
	at("Reiser4", 64<<10, "ReIsEr4"),
	at("NILFS2", 1024+6, "\x34\x34"),
	at("GFS2", 64<<10, "\x01\x16\x19\x70"),
	at("OCFS2", 2048, "OCFSV2"),
	at("OCFS2", 4096, "OCFSV2"),
	at("OCFS2", 1024, "OCFSV2"),
	at("OCFS2", 8192, "OCFSV2"),
	at("EROFS", 1024, "\xe2\xe1\xf5\xe0"),
	at("SquashFS", 0, "hsqs"),
	at("UFS", 8<<10+1372, "\x54\x19\x01\x00"),
	at("UFS2", 64<<10+1372, "\x19\x01\x54\x19"),
	at("APFS", 32, "NXSB"),
	at("HFS+", 1024, "H+\x00\x04"),
	at("HFSX", 1024, "HX\x00\x05"),
	at("HFS", 1024, "BD"),
	at("ISO 9660", 32<<10+1, "CD001"),
	at("UDF", 32<<10+1, "BEA01"),
	at("UDF", 34<<10+1, "NSR0"),
	at("ext2/ext3/ext4", 1024+56, "\x53\xef"),

	// Swap has its mark at the end of a page, whose size differs.
	at("Linux swap", 4096-10, "SWAPSPACE2"),
	at("Linux swap", 8192-10, "SWAPSPACE2"),
	at("Linux swap", 16<<10-10, "SWAPSPACE2"),
	at("Linux swap", 64<<10-10, "SWAPSPACE2"),
	at("Linux swap", 4096-10, "SWAP-SPACE"),
	at("Linux hibernation image", 4096-10, "S1SUSPEND"),

	// Partition tables.
	at("GPT", 512, "EFI PART"),
	at("GPT", 4096, "EFI PART"),
	at("GPT (second header)", -512, "EFI PART"),
	at("GPT (second header)", -4096, "EFI PART"),
	at("MBR or boot sector", 510, "\x55\xaa"),

	// Marks at the end only.
	at("NTFS (copy of the boot sector)", -512+3, "NTFS    "),
	at("NTFS (copy of the boot sector)", -4096+3, "NTFS    "),
	at("Linux RAID", -8192, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"),
	at("Linux RAID", -8192-4096, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"),
	at("DRBD", -4096+60, "\x83\x74\x02\x67"),
	at("Intel RAID", -1024, "Intel Raid ISM Cfg Sig. "),
	at("ZFS", -512<<10+128<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00"),
	at("ZFS", -256<<10+128<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00"),
}
