//! TLS over buffers in memory, so that this program reads the socket itself and keeps the kernel's
//! receive stamps.

#[cfg(feature = "tls")]
pub use built::{Client, Session};
#[cfg(not(feature = "tls"))]
pub use unbuilt::{Client, Session};

/// Whether this executable can do TLS.
pub const BUILT: bool = cfg!(feature = "tls");

/// What a session read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    Bytes(usize),
    /// More has to arrive first.
    Nothing,
    /// The server said that it will send no more.
    End,
}

#[cfg(not(feature = "tls"))]
mod unbuilt {
    use super::Plain;

    /// Never made: a plan with https is refused.
    pub enum Client {}
    pub enum Session {}

    impl Client {
        pub fn new(_host: &str) -> Result<Client, String> {
            Err("this metronome was built without TLS".to_string())
        }

        pub fn session(&self) -> Result<Session, String> {
            match *self {}
        }
    }

    impl Session {
        pub fn take(&mut self, _bytes: &[u8]) {
            match *self {}
        }

        pub fn handshake(&mut self) -> Result<bool, String> {
            match *self {}
        }

        pub fn read(&mut self, _buffer: &mut [u8]) -> Result<Plain, String> {
            match *self {}
        }

        pub fn write(&mut self, _bytes: &[u8]) -> Result<(), String> {
            match *self {}
        }

        pub fn outgoing(&self) -> &[u8] {
            match *self {}
        }

        pub fn sent(&mut self, _count: usize) {
            match *self {}
        }
    }
}

#[cfg(feature = "tls")]
mod built {
    use std::io::{self, Read, Write};

    use openssl::ssl::{
        ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslStream,
        SslVerifyMode, SslVersion,
    };

    use super::Plain;

    /// What all connections to a server share.
    pub struct Client {
        context: SslContext,
        host: String,
    }

    /// The two directions of a connection. Memory stays allocated from one answer to the next.
    #[derive(Default)]
    struct Buffers {
        incoming: Vec<u8>,
        taken: usize,
        outgoing: Vec<u8>,
        sent: usize,
    }

    impl Read for Buffers {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let rest = &self.incoming[self.taken..];
            if rest.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.taken += count;
            if self.taken == self.incoming.len() {
                self.incoming.clear();
                self.taken = 0;
            }
            Ok(count)
        }
    }

    impl Write for Buffers {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.outgoing.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    pub struct Session {
        stream: SslStream<Buffers>,
    }

    fn explain(error: openssl::ssl::Error) -> String {
        error.to_string()
    }

    impl Client {
        /// Trusts the certificates of SSL_CERT_FILE and SSL_CERT_DIR, or else the distribution's.
        pub fn new(host: &str) -> Result<Client, String> {
            let build = || {
                let mut builder = SslContextBuilder::new(SslMethod::tls_client())?;
                builder.set_default_verify_paths()?;
                builder.set_verify(SslVerifyMode::PEER);
                builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
                builder.set_mode(SslMode::RELEASE_BUFFERS);
                builder.set_alpn_protos(b"\x08http/1.1")?;
                Ok(builder.build())
            };
            let context = build().map_err(|error: openssl::error::ErrorStack| error.to_string())?;
            Ok(Client {
                context,
                host: host.to_string(),
            })
        }

        pub fn session(&self) -> Result<Session, String> {
            let build = || {
                let mut ssl = Ssl::new(&self.context)?;
                match self.host.parse() {
                    Ok(address) => ssl.param_mut().set_ip(address)?,
                    Err(_) => {
                        ssl.set_hostname(&self.host)?;
                        ssl.param_mut().set_host(&self.host)?;
                    }
                }
                ssl.set_connect_state();
                let buffers = Buffers {
                    incoming: Vec::with_capacity(1 << 15),
                    outgoing: Vec::with_capacity(1 << 12),
                    ..Buffers::default()
                };
                SslStream::new(ssl, buffers)
            };
            let stream = build().map_err(|error| error.to_string())?;
            Ok(Session { stream })
        }
    }

    impl Session {
        /// Takes bytes that came over the network.
        pub fn take(&mut self, bytes: &[u8]) {
            self.stream.get_mut().incoming.extend_from_slice(bytes);
        }

        /// Goes on with the handshake as far as it can. Says whether it is done.
        pub fn handshake(&mut self) -> Result<bool, String> {
            match self.stream.do_handshake() {
                Ok(()) => Ok(true),
                Err(error) if error.code() == ErrorCode::WANT_READ => Ok(false),
                Err(error) => {
                    let verified = self.stream.ssl().verify_result();
                    if verified == openssl::x509::X509VerifyResult::OK {
                        Err(explain(error))
                    } else {
                        Err(format!("certificate: {}", verified.error_string()))
                    }
                }
            }
        }

        pub fn read(&mut self, buffer: &mut [u8]) -> Result<Plain, String> {
            match self.stream.ssl_read(buffer) {
                Ok(count) => Ok(Plain::Bytes(count)),
                Err(error) if error.code() == ErrorCode::WANT_READ => Ok(Plain::Nothing),
                Err(error) if error.code() == ErrorCode::ZERO_RETURN => Ok(Plain::End),
                Err(error) => Err(explain(error)),
            }
        }

        /// Encrypts all bytes.
        pub fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
            let mut rest = bytes;
            while !rest.is_empty() {
                let count = self.stream.ssl_write(rest).map_err(explain)?;
                rest = &rest[count..];
            }
            Ok(())
        }

        /// What is to be sent over the network.
        pub fn outgoing(&self) -> &[u8] {
            let buffers = self.stream.get_ref();
            &buffers.outgoing[buffers.sent..]
        }

        /// Says that so many bytes of it were sent.
        pub fn sent(&mut self, count: usize) {
            let buffers = self.stream.get_mut();
            buffers.sent += count;
            if buffers.sent == buffers.outgoing.len() {
                buffers.outgoing.clear();
                buffers.sent = 0;
            }
        }
    }
}
