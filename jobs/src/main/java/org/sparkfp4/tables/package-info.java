/** Tables of any format that Spark reads, by the names that options give them. */
package org.sparkfp4.tables;
