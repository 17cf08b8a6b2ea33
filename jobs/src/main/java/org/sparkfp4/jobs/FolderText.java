package org.sparkfp4.jobs;

import org.apache.hadoop.fs.Path;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Holds the text of an option that names a folder or a file to what Hadoop can take for a path. */
final class FolderText implements ITypeConverter<String> {
  @Override
  public String convert(String text) {
    if (text.isBlank()) {
      throw new TypeConversionException("\"" + text + "\" is no path; is a shell variable unset?");
    }

    try {
      new Path(text);
    } catch (IllegalArgumentException e) {
      throw new TypeConversionException("\"" + text + "\" is no path: what stands before its first colon is taken for "
          + "the scheme of a file system, as in s3a://bucket/model; write ./" + text + " for a local one");
    }

    return text;
  }
}
