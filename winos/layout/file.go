package layout

// Links and mount points. Source: REPARSE_DATA_BUFFER, ntifs.h.
const (
	ReparseTag        U32 = 0 // REPARSE_DATA_BUFFER.ReparseTag
	ReparseDataLength U16 = 4 // REPARSE_DATA_BUFFER.ReparseDataLength
	ReparseData           = 8 // REPARSE_DATA_BUFFER.GenericReparseBuffer.DataBuffer

	SymlinkSubstituteNameOffset U16 = 8  // REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.SubstituteNameOffset
	SymlinkSubstituteNameLength U16 = 10 // REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.SubstituteNameLength
	SymlinkPrintNameOffset      U16 = 12 // REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.PrintNameOffset
	SymlinkPrintNameLength      U16 = 14 // REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.PrintNameLength
	SymlinkFlags                U32 = 16 // REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.Flags
	SymlinkPathBuffer               = 20 // REPARSE_DATA_BUFFER.SymbolicLinkReparseBuffer.PathBuffer

	MountPointSubstituteNameOffset U16 = 8  // REPARSE_DATA_BUFFER.MountPointReparseBuffer.SubstituteNameOffset
	MountPointSubstituteNameLength U16 = 10 // REPARSE_DATA_BUFFER.MountPointReparseBuffer.SubstituteNameLength
	MountPointPrintNameOffset      U16 = 12 // REPARSE_DATA_BUFFER.MountPointReparseBuffer.PrintNameOffset
	MountPointPrintNameLength      U16 = 14 // REPARSE_DATA_BUFFER.MountPointReparseBuffer.PrintNameLength
	MountPointPathBuffer               = 16 // REPARSE_DATA_BUFFER.MountPointReparseBuffer.PathBuffer
)

// An entry of a folder. Source: FILE_FULL_DIR_INFO, winbase.h.
const (
	FullDirNextEntryOffset U32 = 0  // FILE_FULL_DIR_INFO.NextEntryOffset
	FullDirFileNameLength  U32 = 60 // FILE_FULL_DIR_INFO.FileNameLength
	FullDirFileName            = 68 // FILE_FULL_DIR_INFO.FileName
)
