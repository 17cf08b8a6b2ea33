/** Files of any content on any of Hadoop's file systems: what is asked of them, and how they are written whole. */
package org.sparkfp4.files;
